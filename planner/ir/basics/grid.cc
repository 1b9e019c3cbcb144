#include "planner/ir/basics/grid.h"

#include <algorithm>

#include "planner/ir/basics/printable.h"

namespace pfeife {
namespace {

constexpr std::size_t kBetween = 2;

/// Where the part behind the point begins.
std::size_t point_of(const std::string& text) { return std::min(text.find('.'), text.size()); }

/// The room of a column: in front of the point, from the point on, and in all.
struct Room {
  std::size_t front = 0, back = 0, whole = 0;
};

std::string shown(const GridColumn& column, const std::string& text) {
  const std::string line = printable_line(text);
  return column.most > 0 ? clipped(line, column.most) : line;
}

std::vector<Room> rooms_of(const std::vector<GridColumn>& columns,
                           const std::vector<GridRow>& rows) {
  std::vector<Room> rooms(columns.size());
  for (std::size_t c = 0; c < columns.size(); ++c) {
    Room& room = rooms[c];
    for (const GridRow& row : rows) {
      const bool last_of_short = row.cells.size() < columns.size() && c + 1 == row.cells.size();
      if (c >= row.cells.size() || last_of_short) continue;
      const std::string text = shown(columns[c], row.cells[c].text);
      room.front = std::max(room.front, point_of(text));
      room.back = std::max(room.back, text.size() - point_of(text));
      room.whole = std::max(room.whole, text.size());
    }
    if (columns[c].number) room.whole = room.front + room.back;
    room.whole = std::max(room.whole, columns[c].head.size());
  }
  return rooms;
}

std::string blanks(std::size_t count) { return std::string(count, ' '); }

/// The cell, as wide as its column. `last`: no blanks behind it.
std::string padded(const GridColumn& column, const Room& room, const std::string& text) {
  if (!column.number) return text + blanks(room.whole - std::min(room.whole, text.size()));
  if (text.empty()) return blanks(room.whole);
  const std::size_t behind = room.back - (text.size() - point_of(text));
  return blanks(room.whole - text.size() - behind) + text + blanks(behind);
}

std::string without_blanks_at_the_end(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

std::string head_line(const std::vector<GridColumn>& columns, const std::vector<Room>& rooms) {
  std::string line;
  for (std::size_t c = 0; c < columns.size(); ++c) {
    const std::string room = blanks(rooms[c].whole - columns[c].head.size());
    line += (c > 0 ? blanks(kBetween) : "") + (columns[c].number ? room : "") + columns[c].head +
            (columns[c].number ? "" : room);
  }
  return without_blanks_at_the_end(line);
}

std::string row_line(const std::vector<GridColumn>& columns, const std::vector<Room>& rooms,
                     const GridRow& row, bool colour) {
  std::string line;
  // Blanks at the end of a line are no text; they are held back until there is some.
  std::string held;
  for (std::size_t c = 0; c < row.cells.size(); ++c) {
    const bool last_of_short = row.cells.size() < columns.size() && c + 1 == row.cells.size();
    const std::string text = shown(columns[c], row.cells[c].text);
    const std::string cell =
        last_of_short ? printable_line(row.cells[c].text) : padded(columns[c], rooms[c], text);
    const std::size_t from = std::min(cell.find_first_not_of(' '), cell.size());
    const std::size_t to = cell.find_last_not_of(' ') + 1;
    if (c > 0) held += blanks(kBetween);
    held += cell.substr(0, from);
    if (from == cell.size()) continue;
    const Look look = row.cells[c].look != Look::Plain ? row.cells[c].look : row.look;
    line += held + painted(cell.substr(from, to - from), look, colour);
    held = cell.substr(to);
  }
  return line;
}

}  // namespace

std::string painted(const std::string& text, Look look, bool colour) {
  if (!colour || look == Look::Plain) return text;
  const char* const code = look == Look::Chosen ? "1" : look == Look::DoesNotFit ? "31" : "33";
  return std::string("\033[") + code + "m" + text + "\033[0m";
}

std::string grid_text(const std::vector<GridColumn>& columns, const std::vector<GridRow>& rows,
                      bool colour) {
  const std::vector<Room> rooms = rooms_of(columns, rows);
  std::string text = head_line(columns, rooms) + "\n";
  for (const GridRow& row : rows) text += row_line(columns, rooms, row, colour) + "\n";
  return text;
}

std::string plain_grid(const std::vector<std::vector<std::string>>& rows, bool numbers) {
  std::size_t width = 0;
  for (const auto& row : rows) width = std::max(width, row.size());
  std::vector<GridColumn> columns(width);
  for (std::size_t c = 0; c < width; ++c) {
    columns[c].number = numbers && c > 0;
    if (c < rows.front().size()) columns[c].head = rows.front()[c];
  }
  std::vector<GridRow> below;
  for (std::size_t r = 1; r < rows.size(); ++r) {
    GridRow& row = below.emplace_back();
    for (const std::string& text : rows[r]) row.cells.push_back({text});
    row.cells.resize(width);
  }
  return grid_text(columns, below, false);
}

std::size_t grid_width(const std::vector<GridColumn>& columns, const std::vector<GridRow>& rows) {
  std::size_t width = kBetween * (columns.empty() ? 0 : columns.size() - 1);
  for (const Room& room : rooms_of(columns, rows)) width += room.whole;
  return width;
}

std::string clipped(const std::string& text, std::size_t most) {
  if (text.size() <= most) return text;
  std::size_t kept = most < 2 ? 0 : most - 2;
  while (kept > 0 && (static_cast<unsigned char>(text[kept]) & 0xC0) == 0x80) --kept;  // UTF-8
  return text.substr(0, kept) + "..";
}

std::string wrapped(const std::string& text_of_words, std::size_t width, const std::string& first,
                    const std::string& rest) {
  const std::string words = printable_line(text_of_words);
  std::string text, line = first;
  bool any = false;  // word in the line
  for (std::size_t begin = 0, end; begin < words.size(); begin = end + 1) {
    end = std::min(words.find(' ', begin), words.size());
    if (any && line.size() + 1 + end - begin > width) {
      text += line + "\n";
      line = rest;
      any = false;
    }
    line += (any ? " " : "") + words.substr(begin, end - begin);
    any = true;
  }
  return text + line + "\n";
}

}  // namespace pfeife
