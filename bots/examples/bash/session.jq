# Turns the arena's messages into lines for session.sh, one for each question or news, with 0x1f between fields.
#
#   match    ID  -    NAME VALUE …      news     ID  ASK  NAME VALUE …      again    ID  ASK  TEXT
#   ask      ID  ASK  NAME VALUE …      legal    ID  ASK  ANSWER …          refused  ID  -    TEXT
#   unknown  ID  ASK  TEXT
#
# ID, ASK and each ANSWER are JSON and can be put into a reply unchanged.

# A value as one line of text, without control characters such as 0x1f.
def text:
  if type == "array" and all(.[]; type == "string") then join(" ") else . end
  | if type == "string" then gsub("[[:cntrl:]]"; " ") else tojson end;

def named: to_entries[] | select(.key != "") | (.key, .value) | text;

def line($kind; $message; fields):
  [$kind, ($message.match | tojson), ($message.ask | tojson), fields] | join("\u001f");

def news($message): $message.news[] | line("news"; $message; named);

def legal($message):
  $message.legal | line("legal"; $message; if type == "array" then .[] | tojson else empty end);

inputs
| if type == "array" then .[] else . end
| . as $message
| if .type == "match" then
    line("match"; .; del(.type, .match) | named)
  elif .type == "ask" then
    news(.), legal(.),
    # The ends of a range, `min` and `max`, become fields of the question.
    line("ask"; .; del(.type, .match, .ask, .news, .legal) + (.legal | objects // {}) | named)
  elif .type == "past" or .type == "over" then
    news(.)
  elif .type == "refused" and .legal != null then
    line("again"; .; "\(.code): \(.text)" | text)
  elif .type == "refused" then
    line("refused"; .; "\(.code): \(.text)" | text)
  elif .type == "welcome" then
    empty
  else
    line("unknown"; .; "version 1 has no message of type \(.type)" | text)
  end
