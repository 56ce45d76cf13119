"""Taking profiles, under the names of jax.profiler."""

from minijax.runtime.profiling import (
    ProfileData,
    ProfileOptions,
    StepTraceAnnotation,
    TraceAnnotation,
    annotate_function,
    device_memory_profile,
    save_device_memory_profile,
    start_trace,
    stop_trace,
    trace,
)

__all__ = [
    "ProfileData",
    "ProfileOptions",
    "StepTraceAnnotation",
    "TraceAnnotation",
    "annotate_function",
    "device_memory_profile",
    "save_device_memory_profile",
    "start_trace",
    "stop_trace",
    "trace",
]
