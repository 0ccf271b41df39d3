-- How a replay ends.

-- Has a replay that runs end in a state; and why, unless that is the usual end.
local function end_replay(id, state, why)
  redis.call('HSET', replay_key(id), 'state', state)
  if why ~= '' then redis.call('HSET', replay_key(id), 'error', why) end
end
