// One clone of a function for each generation of x86 vector units, chosen when the program starts.
// The files that use it are built without -march and hold plain loops.
#pragma once

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__)
#define PFEIFE_CLONES __attribute__((target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4")))
// Without the widest vectors: where loads depend on stores a few instructions before, those of 64
// bytes wait so much longer (on AMD Zen 5) that two of 32 bytes are done first.
#define PFEIFE_CLONES_32 __attribute__((target_clones("default", "arch=x86-64-v3")))
#else
#define PFEIFE_CLONES
#define PFEIFE_CLONES_32
#endif
