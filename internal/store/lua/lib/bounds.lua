-- Bounds of histories, for scripts that read them.

-- The positions of the oldest and of the newest event in a topic's history; of an empty one the
-- former is the next, and the latter the one before. Nil if the topic keeps none.
local function history_bounds(topic)
  local history = histories().find(topic)
  if not history then return nil end
  return history.first, history.first + history.length - 1
end
