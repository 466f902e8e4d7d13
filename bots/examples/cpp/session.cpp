#include "session.hpp"

#include <algorithm>
#include <chrono>
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

// Of closing; `lost` is without one.
enum Code : unsigned { lost = 0, done = 1000, protocol = 1002, oversize = 1009, replaced = 4000, unwelcome = 4001 };

constexpr auto patience = 60s, timeout = 30s;  // for an arena that is away; for one that is there, to connect or to speak
constexpr auto first_pause = 100ms, longest_pause = 2000ms;
constexpr std::size_t reason_bytes = 120;  // a close frame has room for 123

std::mt19937_64& generator() {
    static std::mt19937_64 generator{std::random_device{}()};
    return generator;
}

// A word of our own, which goes into the cards.
std::string fresh_nonce() {
    std::random_device device;
    return std::to_string(device()) + '-' + std::to_string(device());
}

std::optional<std::string> environment(const char* name) {
    const char* value = std::getenv(name);
    return value ? std::optional<std::string>{value} : std::nullopt;
}

// ---- Messages

// A chair in a match. The latest answer is kept, as a question may come again after a reconnect.
struct Seat {
    std::unique_ptr<Player> player;
    std::string nonce = fresh_nonce();
    std::string ask;
    Json answer;

    void hear(const Json& message) {
        for (const Json& news : message.at("news")) player->hear(news);
    }
};

// Whether there is a reason to connect again.
enum class Standing {
    stranger,  // over this connection the arena has not said welcome
    welcome,
    expired,  // the arena was started again, and does not know the session
    refused,  // for good, and why has been said
};

class Session {
public:
    Session(const std::vector<std::string>& games, const MakePlayer& make_player)
        : games_{games}, make_player_{make_player} {}

    std::string hello();

    // Does what a frame asks for, and returns the frame to send; an empty one is none.
    std::string reply(const std::string& frame);

    Standing standing = Standing::stranger;

private:
    Json take(const Json& message);
    Json answer(const Json& question);
    Json was_refused(const Json& message);

    std::vector<std::string> games_;
    MakePlayer make_player_;
    std::map<std::string, Seat> seats_;  // by the id of the chair
    std::optional<std::string> resume_;  // the latest session
};

std::string Session::hello() {
    Json hello{{"type", "hello"}, {"protocol", 1}, {"games", games_}, {"tables", 8}, {"batch", true}};
    hello["name"] = environment("ARENA_NAME").value_or("cpp");
    hello["client"] = "card-arena example (cpp)";
    if (const auto token = environment("ARENA_TOKEN")) hello["token"] = *token;
    if (resume_) hello["resume"] = *resume_;
    return hello.dump();
}

std::string Session::reply(const std::string& frame) {
    Json heard = Json::parse(frame);
    if (!heard.is_array()) heard = Json::array({std::move(heard)});
    Json replies = Json::array();
    for (const Json& message : heard) {
        if (Json reply = take(message); !reply.is_null()) replies.push_back(std::move(reply));
    }
    if (replies.empty()) return {};
    return replies.size() == 1 ? replies[0].dump() : replies.dump();
}

// What to say to a message, or null.
Json Session::take(const Json& message) {
    const auto type = message.at("type").get<std::string>();
    if (type == "welcome") {
        resume_ = message.at("session");
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
        if (auto seat = seats_.extract(message.at("match"))) seat.mapped().hear(message);
    } else if (type == "refused") {
        return was_refused(message);
    } else {
        throw std::runtime_error("version 1 has no message of type " + type);
    }
    return nullptr;
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
    if (const Json legal = message.value("legal", Json{}); !legal.is_null()) {  // practice: asked again
        Seat& seat = seats_.at(message.at("match"));
        seat.answer = any_legal(legal);
        return answered(message, seat.answer);
    }
    standing = Standing::refused;
    if (code == "session") {  // say hello as if for the first time
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

// What a connection ended with: the code of the frame that closed it, or `lost`.
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

// Does what `start` starts, and gives up when that takes too long. `start` is called with what is to be called in the end.
template <typename Start>
error_code in_time(asio::io_context& context, Socket& socket, Start start) {
    error_code result;
    start([&result](error_code error, auto&&...) { result = error; });
    context.restart();
    context.run_for(timeout);
    if (context.stopped()) return result;
    socket.next_layer().close(result);  // which ends what was started
    context.run();
    return asio::error::timed_out;
}

// Has the kernel end the connection if the other machine, or the network, is gone: we might wait for ever.
void notice_dead_link(tcp::socket& link) {
    error_code ignored;  // where the system cannot, it has its own times
    link.set_option(tcp::socket::keep_alive{true}, ignored);
#ifdef __linux__
    constexpr std::pair<int, int> times[] = {
        {TCP_KEEPIDLE, 5}, {TCP_KEEPINTVL, 3}, {TCP_KEEPCNT, 4}, {TCP_USER_TIMEOUT, 17'000}};
    for (const auto& [option, value] : times) {
        setsockopt(link.native_handle(), IPPROTO_TCP, option, &value, sizeof value);
    }
#endif
}

// One connection, from hello to its end. Throws what a player throws.
End converse(Session& session, const Address& address) {
    asio::io_context context;
    Socket socket{context};
    boost::beast::flat_buffer buffer;
    error_code error;
    const auto await = [&](auto start) { error = in_time(context, socket, start); };
    const auto send = [&](const std::string& frame) {
        error_code ignored;  // if the connection is closed, reading says how
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
    await([&](auto done) { socket.async_read(buffer, done); });  // from now on the arena may take its time
    for (;; buffer.clear(), socket.read(buffer, error)) {
        if (error == asio::error::timed_out) return {lost, error.message()};
        if (error) return {socket.reason().code, socket.reason().reason.c_str()};
        try {
            send(session.reply(boost::beast::buffers_to_string(buffer.data())));
        } catch (const std::exception& failure) {
            const auto why = std::string{failure.what()}.substr(0, reason_bytes);
            socket.close({websocket::close_code::internal_error, why}, error);
            throw;
        }
    }
}

// Connects, and connects again, until there is no reason to; returns the exit status.
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
