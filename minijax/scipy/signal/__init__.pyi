from minijax.scipy.signal.filtering import (
    convolve as convolve,
    convolve2d as convolve2d,
    correlate as correlate,
    correlate2d as correlate2d,
    detrend as detrend,
    fftconvolve as fftconvolve,
)
from minijax.scipy.signal.spectra import csd as csd, istft as istft, stft as stft, welch as welch
