// What the stand-in for NCCL needs of the stand-in card: work that a stream has been given and that
// is not done when the call returns.
#pragma once

#include <cstdint>

extern "C" {
/// The stream (as NCCL is given it) has one more piece of work.
void pfeife_stand_in_given(void* stream);
/// Its first piece of work that is not done is done.
void pfeife_stand_in_done(void* stream);
/// What it has been given reads or writes memory of the card.
void pfeife_stand_in_uses(void* stream, const char* what, const void* data, bool writes);
}
