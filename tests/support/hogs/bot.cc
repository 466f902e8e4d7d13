// A whole bot in one file, without a library: `./bot [DEED]` plays the first legal answer, and does its deed at its third decision.
// What the deeds are is in bot.py beside it. C++ has no JSON; what is needed of it is below.

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

constexpr int HOARD_MIB = 320;
static std::vector<std::vector<char>> hoard;

// ---- JSON: values are kept as they are written

// Where the string that begins somewhere has ended.
static size_t end_of_string(const std::string& text, size_t begin) {
    size_t at = begin + 1;
    while (at < text.size() && text[at] != '"') at += text[at] == '\\' ? 2 : 1;
    return std::min(at + 1, text.size());
}

static bool opens(char letter) { return letter == '{' || letter == '['; }
static bool closes(char letter) { return letter == '}' || letter == ']'; }

// The value that begins somewhere, up to the comma or bracket behind it.
static std::string value_at(const std::string& text, size_t begin) {
    int depth = 0;
    size_t at = begin;
    while (at < text.size()) {
        const char letter = text[at];
        if (depth == 0 && (letter == ',' || closes(letter))) break;
        if (opens(letter)) depth++;
        if (closes(letter)) depth--;
        at = letter == '"' ? end_of_string(text, at) : at + 1;
    }
    return text.substr(begin, at - begin);
}

// A field's value in an object, wherever it stands there; nothing if there is none.
static std::string field(const std::string& object, const std::string& name) {
    const std::string key = '"' + name + '"';
    int depth = 0;
    for (size_t at = 0; at < object.size();) {
        const char letter = object[at];
        if (opens(letter)) depth++;
        if (closes(letter)) depth--;
        if (letter != '"') {
            at++;
            continue;
        }
        const size_t end = end_of_string(object, at);
        const bool is_key = end < object.size() && object[end] == ':';
        if (depth == 1 && is_key && object.compare(at, end - at, key) == 0)
            return value_at(object, end + 1);
        at = end;
    }
    return "";
}

// The first legal answer of a list, or the least of a range.
static std::string first(const std::string& legal) {
    return legal[0] == '[' ? value_at(legal, 1) : field(legal, "min");
}

// ---- Deeds

static void spin() {
    for (volatile unsigned counter = 0;;) counter = counter + 1;
}

static void perform(const std::string& deed) {
    if (deed == "hog") {
        for (int piece = 0; piece < HOARD_MIB / 8; piece++) {
            hoard.emplace_back(8 << 20, 1);
            std::this_thread::sleep_for(std::chrono::milliseconds(2));
        }
    } else if (deed == "crash") {
        std::cerr << "it was the butler" << std::endl;
        std::exit(1);
    } else if (deed == "spin") {
        spin();
    } else if (deed == "stall") {
        std::this_thread::sleep_for(std::chrono::hours(1));
    } else if (deed == "ponder") {
        std::thread(spin).detach();
    }
}

// ---- The bot

static void say(const std::string& message) { std::cout << message << std::endl; }

int main(int count, char** words) {
    const std::string deed = count > 1 ? words[1] : "hello";
    const char* name = std::getenv("ARENA_NAME");
    say(R"({"type":"hello","protocol":1,"name":")" + std::string(name ? name : "bot") +
        R"(","games":["ace_king_queen"]})");
    int asked = 0;
    for (std::string line; std::getline(std::cin, line);) {
        const std::string type = field(line, "type"), match = field(line, "match");
        if (type == R"("match")") {
            say(R"({"type":"ready","match":)" + match + R"(,"nonce":"c++"})");
        } else if (type == R"("ask")") {
            if (++asked == 3) perform(deed);
            say(R"({"type":"answer","match":)" + match + R"(,"ask":)" + field(line, "ask") +
                R"(,"value":)" + first(field(line, "legal")) + "}");
        }
    }
    std::_Exit(0);  // whatever still ponders
}
