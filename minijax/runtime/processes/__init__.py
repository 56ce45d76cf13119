"""Several processes as one program: how they meet, what they tell each other, how they leave."""
