"""What older programs of JAX use: `xmap`, tilings, arrays and maps of earlier versions."""
