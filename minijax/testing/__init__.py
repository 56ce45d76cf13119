"""What tests need, of this project and of programs written with it: a leaf that no other room imports."""
