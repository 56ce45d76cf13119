"""What tests need, of this project and of programs written with it: a leaf of the layers."""
