# Prints the scores of campaigns side by side, in Markdown, from their JSON reports (jq --slurp --raw-output).
# Each system has a column, with the sums of its campaigns.

# The columns, and the rows with the places of their figures in a report.
["oncepay", "authority", "setnx", "fiber-lock", "fiber", "none"] as $order
| [
    ["faults", "faults"],
    ["attempts", "attempts"],
    ["keys", "score.keys"],
    ["effects", "score.effects"],
    ["**keys with more than one effect**", "score.doubled_keys"],
    ["effects beyond one per key", "score.extra_effects"],
    ["orders charged more than once", "score.double_charges"],
    ["charges without a payment", "score.charges_without_payment"],
    ["**keys with a lost acknowledgement**", "score.lost_answers"],
    ["keys refused, although the effect happened", "score.refused_yet_done"],
    ["**keys with two different answers**", "score.two_answers"],
    ["keys with a 2xx to another request", "score.other_request"],
    ["keys with another account's answer", "score.other_account"],
    ["keys in progress for more than 13 s", "score.stuck"]
  ] as $rows
| group_by(.system) | sort_by(.[0].system as $system | $order | index($system)) # by system
| def row(title; cell): "| \(title) | \(map(cell | tostring) | join(" | ")) |";
  row(""; .[0].system),
  row("---"; "--:"),
  row("seeds"; map(.seed) | join(", ")),
  ($rows[] as [$title, $figure] | row($title; map(getpath($figure / ".") // 0) | add))
