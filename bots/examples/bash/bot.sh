#!/usr/bin/env bash
# A bot for all five games: it plays three card poker well, and the others at random.

set -u
source "$(dirname "$0")/session.sh" || exit

decide() {
  case ${match[game]}/${question[kind]} in
    three_card_poker/ante) ante ;;
    three_card_poker/play)
      # shellcheck disable=SC2086 # three words
      if worth_playing ${question[hand]}; then answer='"play"'; else answer='"fold"'; fi
      ;;
    *) any_legal ;;
  esac
}

# The dealer has the edge, so that the smallest ante loses least. To reach a goal, few large antes are
# better than many small ones: a win pays two antes.
ante() {
  answer=${question[min]}
  if [[ ${match[settings]} =~ '"goal":'([0-9]+) ]]; then
    local needed=$(((BASH_REMATCH[1] - question[cash] + 1) / 2))
    answer=$((needed < question[max] ? needed : question[max]))
  fi
}

declare -rA RANK=([2]=2 [3]=3 [4]=4 [5]=5 [6]=6 [7]=7 [8]=8 [9]=9 [T]=10 [J]=11 [Q]=12 [K]=13 [A]=14)

# Whether three cards are queen-six-four or better; with less it costs less to fold.
worth_playing() {
  local a=${RANK[${1:0:1}]} b=${RANK[${2:0:1}]} c=${RANK[${3:0:1}]} swap
  ((a < b)) && swap=$a a=$b b=$swap
  ((b < c)) && swap=$b b=$c c=$swap
  ((a < b)) && swap=$a a=$b b=$swap

  [[ ${1:1} == "${2:1}" && ${2:1} == "${3:1}" ]] ||              # a flush
    ((a == b || b == c)) ||                                        # a pair or three of a kind
    ((a == b + 1 && b == c + 1 || a == 14 && b == 3 && c == 2)) || # a straight
    ((a * 10000 + b * 100 + c >= 120604))
}

play ace_king_queen gin_rummy high_low three_card_poker blackjack
