// One clone of a function for each generation of x86 vector units, chosen when the program starts.
// The files that use it are built without -march and hold plain loops.
#pragma once

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__)
#define PFEIFE_CLONES __attribute__((target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4")))
#else
#define PFEIFE_CLONES
#endif
