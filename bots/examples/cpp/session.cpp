#include "session.hpp"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <map>
#include <optional>
#include <random>
#include <stdexcept>
#include <string_view>
#include <thread>
#include <utility>

#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/beast/core/buffers_to_string.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/websocket/stream.hpp>

#ifdef __linux__
#include <netinet/tcp.h>
#endif

namespace session {
namespace {

namespace asio = boost::asio;
namespace websocket = boost::beast::websocket;
using boost::beast::error_code;
using tcp = asio::ip::tcp;
using namespace std::chrono_literals;

// Close codes; `lost` stands for none.
enum Code : unsigned { lost = 0, done = 1000, protocol = 1002, oversize = 1009, replaced = 4000, unwelcome = 4001 };

constexpr auto patience = 60s;  // how long to try to connect
constexpr auto timeout = 30s;   // for one attempt, and for the first message
constexpr auto first_pause = 100ms, longest_pause = 2000ms;
constexpr std::size_t reason_bytes = 120;  // a close reason has at most 123

std::mt19937_64& generator() {
    static std::mt19937_64 generator{std::random_device{}()};
    return generator;
}

// A random word for each match, a part of what the cards come from.
std::string fresh_nonce() {
    std::random_device device;
    return std::to_string(device()) + '-' + std::to_string(device());
}

std::optional<std::string> environment(const char* name) {
    const char* value = std::getenv(name);
    return value ? std::optional<std::string>{value} : std::nullopt;
}

// ---- Messages

// A seat in a match. It stores its latest answer, because a question may come again.
struct Seat {
    std::unique_ptr<Player> player;
    std::string nonce = fresh_nonce();
    std::string ask;
    Json answer;

    void hear(const Json& message) {
        for (const Json& news : message.at("news")) player->hear(news);
    }
};

// How the bot stands with the arena.
enum class Standing {
    stranger,  // the arena has not said welcome over this connection
    welcome,
    expired,  // the arena was started again, and does not know the session
    refused,  // the bot cannot go on, and has printed why
};

class Session {
public:
    Session(const std::vector<std::string>& games, const MakePlayer& make_player)
        : games_{games}, make_player_{make_player} {}

    std::string hello();

    // Handles a frame, and returns the frame to send, or an empty text if there is none.
    std::string reply(const std::string& frame);

    std::size_t matches() const { return seats_.size(); }

    Standing standing = Standing::stranger;
    bool is_leaving = false;  // after the matches that are on

private:
    Json take(const Json& message);
    Json answer(const Json& question);
    Json was_refused(const Json& message);
    Json goodbye();

    std::vector<std::string> games_;
    MakePlayer make_player_;
    std::map<std::string, Seat> seats_;  // by the id of the match
    std::optional<std::string> resume_;  // the latest session
    std::optional<bool> finish_;         // what welcome says of it; empty after goodbye
};

std::string Session::hello() {
    Json hello{{"type", "hello"}, {"protocol", 1}, {"games", games_}, {"tables", 8}, {"batch", true}};
    hello["name"] = environment("ARENA_NAME").value_or("cpp");
    hello["client"] = "card-arena example (cpp)";
    if (const auto token = environment("ARENA_TOKEN")) hello["token"] = *token;
    if (resume_) hello["resume"] = *resume_;
    finish_.reset();
    return hello.dump();
}

std::string Session::reply(const std::string& frame) {
    Json heard = Json::parse(frame);
    if (!heard.is_array()) heard = Json::array({std::move(heard)});
    Json replies = Json::array();
    for (const Json& message : heard) {
        if (Json reply = take(message); !reply.is_null()) replies.push_back(std::move(reply));
    }
    if (is_leaving && finish_ && (*finish_ || seats_.empty())) replies.push_back(goodbye());
    if (replies.empty()) return {};
    return replies.size() == 1 ? replies[0].dump() : replies.dump();
}

// Handles a message, and returns the message to send, or null.
Json Session::take(const Json& message) {
    const auto type = message.at("type").get<std::string>();
    if (type == "welcome") {
        resume_ = message.at("session");
        finish_ = message.value("finish", false);
        standing = Standing::welcome;
    } else if (type == "match") {
        auto& seat = seats_[message.at("match")];
        if (!seat.player) seat.player = make_player_(message);
        return {{"type", "ready"}, {"match", message.at("match")}, {"nonce", seat.nonce}};
    } else if (type == "ask") {
        return answer(message);
    } else if (type == "past") {
        seats_.at(message.at("match")).hear(message);
    } else if (type == "over") {
        if (message.contains("standing")) {  // a competition is over
            std::cerr << message["standing"].at("text").get<std::string>() << std::endl;
        }
        if (auto seat = seats_.extract(message.at("match"))) seat.mapped().hear(message);
    } else if (type == "refused") {
        return was_refused(message);
    } else {
        throw std::runtime_error("version 1 has no message of type " + type);
    }
    return nullptr;
}

// Said once per connection. An arena that does not know `finish` hears it when no match is on.
Json Session::goodbye() {
    Json goodbye{{"type", "goodbye"}};
    if (*finish_) goodbye["finish"] = true;
    finish_.reset();
    return goodbye;
}

Json answered(const Json& question, const Json& value) {
    return {{"type", "answer"},
            {"match", question.at("match")},
            {"ask", question.at("ask")},
            {"value", value}};
}

Json Session::answer(const Json& question) {
    Seat& seat = seats_.at(question.at("match"));
    if (seat.ask != question.at("ask")) {
        seat.hear(question);
        seat.answer = seat.player->decide(question);
        seat.ask = question.at("ask");
    }
    return answered(question, seat.answer);
}

Json Session::was_refused(const Json& message) {
    const std::string code = message.at("code"), text = message.at("text");
    std::cerr << code << ": " << text << '\n';
    if (const Json legal = message.value("legal", Json{}); !legal.is_null()) {  // practice mode: answer again
        Seat& seat = seats_.at(message.at("match"));
        seat.answer = any_legal(legal);
        return answered(message, seat.answer);
    }
    standing = Standing::refused;
    if (code == "session") {  // begin a new session
        standing = Standing::expired;
        resume_.reset();
        seats_.clear();
    }
    return nullptr;
}

// ---- Lines

int play_over_lines(Session& session) {
    std::ios::sync_with_stdio(false);  // lines may be long
    std::cout << session.hello() << std::endl;
    for (std::string line; std::getline(std::cin, line);) {
        if (const auto said = session.reply(line); !said.empty()) std::cout << said << std::endl;
    }
    return session.standing == Standing::refused;
}

// ---- WebSocket

struct Address {
    std::string authority, host, port, path;
};

// How a connection ended: its close code, or `lost`.
struct End {
    unsigned code;
    std::string reason;
};

Address read_url(const std::string& url) {
    constexpr std::string_view scheme = "ws://";
    if (!url.starts_with(scheme)) throw std::invalid_argument("expected ws://host:port, got " + url);
    const auto slash = std::min(url.find('/', scheme.size()), url.size());
    const auto authority = url.substr(scheme.size(), slash - scheme.size());
    const auto path = slash < url.size() ? url.substr(slash) : "/";
    const auto bracket = authority.find(']');  // of an IPv6 address, which has colons of its own
    const bool is_v6 = bracket != std::string::npos;
    const auto colon = std::min(authority.find(':', is_v6 ? bracket : 0), authority.size());
    const auto port = colon < authority.size() ? authority.substr(colon + 1) : "80";
    return {authority, is_v6 ? authority.substr(1, bracket - 1) : authority.substr(0, colon), port, path};
}

using Socket = websocket::stream<tcp::socket, false>;  // the arena negotiates no compression

// Starts an operation and waits for its end, at most for `timeout`. `start` gets the function to call at the end.
template <typename Start>
error_code in_time(asio::io_context& context, Socket& socket, Start start) {
    error_code result;
    start([&result](error_code error, auto&&...) { result = error; });
    context.restart();
    context.run_for(timeout);
    if (context.stopped()) return result;
    socket.next_layer().close(result);  // this ends the operation
    context.run();
    return asio::error::timed_out;
}

// Lets the kernel end the connection if the other machine or the network is gone. Without that the bot
// might wait forever.
void notice_dead_link(tcp::socket& link) {
    error_code ignored;  // not every system has every option
    link.set_option(tcp::socket::keep_alive{true}, ignored);
#ifdef __linux__
    constexpr std::pair<int, int> times[] = {
        {TCP_KEEPIDLE, 5}, {TCP_KEEPINTVL, 3}, {TCP_KEEPCNT, 4}, {TCP_USER_TIMEOUT, 17'000}};
    for (const auto& [option, value] : times) {
        setsockopt(link.native_handle(), IPPROTO_TCP, option, &value, sizeof value);
    }
#endif
}

// Catches the first signal. The second one ends the program, also while a player decides.
void catch_once(asio::signal_set& signals) {
    for (const int number : {SIGINT, SIGTERM}) {
        signals.add(number);
#ifdef SA_RESETHAND
        struct sigaction action;
        sigaction(number, nullptr, &action);
        action.sa_flags |= SA_RESETHAND;
        sigaction(number, &action, nullptr);
#endif
    }
}

// Serves one connection, from hello to its end. Throws what a player throws.
End converse(Session& session, const Address& address) {
    asio::io_context context;
    Socket socket{context};
    boost::beast::flat_buffer buffer;
    error_code error;
    const auto await = [&](auto start) { error = in_time(context, socket, start); };
    const auto send = [&](const std::string& frame) {
        error_code ignored;  // if the connection is closed, the next read says so
        if (!frame.empty()) socket.write(asio::buffer(frame), ignored);
    };
    const auto found = tcp::resolver{context}.resolve(address.host, address.port, error);
    if (!error) await([&](auto done) { asio::async_connect(socket.next_layer(), found, done); });
    if (!error) await([&](auto done) { socket.async_handshake(address.authority, address.path, done); });
    if (error) return {lost, error.message()};
    socket.next_layer().set_option(tcp::no_delay{true}, error);
    notice_dead_link(socket.next_layer());
    socket.auto_fragment(false);
    send(session.hello());
    await([&](auto done) { socket.async_read(buffer, done); });  // later reads have no timeout
    asio::signal_set signals{context};  // without a connection, and once it leaves, a signal ends the program
    if (!session.is_leaving) catch_once(signals);
    signals.async_wait([&](error_code, int) {
        signals.clear();
        session.is_leaving = true;
        std::cerr << "matches to finish: " << session.matches() << "; Ctrl-C again leaves now\n";
        send(session.reply("[]"));
    });
    const auto read = [&] {
        bool is_done = false;
        socket.async_read(buffer, [&](error_code result, std::size_t) { error = result, is_done = true; });
        for (context.restart(); !is_done;) context.run_one();
    };
    for (;; buffer.clear(), read()) {
        if (error == asio::error::timed_out) return {lost, error.message()};
        if (error) return {socket.reason().code, socket.reason().reason.c_str()};
        try {
            send(session.reply(boost::beast::buffers_to_string(buffer.data())));
        } catch (const std::exception& failure) {
            const auto why = ("failed: " + std::string{failure.what()}).substr(0, reason_bytes);
            socket.close({websocket::close_code::internal_error, why}, error);
            throw;
        }
    }
}

// Connects, and connects again until the session is over; returns the exit status.
int play_over_websocket(Session& session) {
    using Clock = std::chrono::steady_clock;
    const auto url = environment("ARENA_URL").value_or("ws://127.0.0.1:7700");
    const auto address = read_url(url);
    auto lost_at = Clock::now();
    for (auto pause = first_pause;; pause = std::min(2 * pause, longest_pause)) {
        session.standing = Standing::stranger;
        const auto [code, reason] = converse(session, address);
        if (session.standing == Standing::refused) return 1;
        if (code == done) return 0;
        const bool is_final = code == protocol || code == oversize || code == replaced || code == unwelcome;
        if (is_final && session.standing != Standing::expired) {
            std::cerr << "the arena has closed with " << code << ": " << reason << '\n';
            return 1;
        }
        if (session.is_leaving && session.matches() == 0) return 0;
        if (session.standing == Standing::welcome) {
            lost_at = Clock::now();
            pause = first_pause;
        }
        if (Clock::now() - lost_at > patience) {
            std::cerr << "no arena at " << url << " for " << patience.count() << " s: " << reason << '\n';
            return 1;
        }
        std::this_thread::sleep_for(pause);
    }
}

}  // namespace

int play(const std::vector<std::string>& games, const MakePlayer& make_player, int argc, char** argv) try {
    Session session{games, make_player};
    const std::vector<std::string_view> arguments{argv + 1, argv + argc};
    if (arguments.empty()) return play_over_websocket(session);
    if (arguments == std::vector<std::string_view>{"--stdio"}) return play_over_lines(session);
    std::cerr << "expected no arguments or --stdio, got " << arguments.front() << '\n';
    return 2;
} catch (const std::exception& failure) {
    std::cerr << failure.what() << '\n';
    return 1;
}

Json any_legal(const Json& legal) {
    using Integers = std::uniform_int_distribution<std::int64_t>;
    if (legal.is_array()) return legal.at(Integers{0, std::ssize(legal) - 1}(generator()));
    return Integers{legal.at("min"), legal.at("max")}(generator());
}

}  // namespace session
