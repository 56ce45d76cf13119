"""Programs for those who change minijax: checks of the checkout, its size, and what tests show."""
