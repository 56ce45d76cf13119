"""The language: types, jaxprs, primitives and the tracing context.  Imports no other room."""
