-- How a replay ends.

-- Ends a running replay in a state; why gives the reason, unless that is the usual end.
local function end_replay(id, state, why)
  redis.call('HSET', replay_key(id), 'state', state)
  if why ~= '' then redis.call('HSET', replay_key(id), 'error', why) end
end
