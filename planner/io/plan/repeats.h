// Words of letters with what repeats in them written once: "fdfdfdrrrrb" is "3(fd)4rb".
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace pfeife {

/// `word` of letters alone.
std::string fold_repeats(std::string_view word);

/// The word again; nullopt if the text is none that fold_repeats may have made, or the word longer
/// than `most`.
std::optional<std::string> unfold_repeats(std::string_view text, std::size_t most);

}  // namespace pfeife
