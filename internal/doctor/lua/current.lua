-- Checks a batch that is listed as a subscriber's current one.
--
-- ARGV     1 namespace, 2 '1' to fix it, 3 token, 4 batch
-- Returns  {} or one of {'gone'}, {'alien'}, {'many'} (a newer one is current, too)
-- Keeps    a batch that is no longer current its job, with which it comes up
local token, bid = ARGV[3], ARGV[4]
if redis.call('SISMEMBER', current_key(token), bid) == 0 or is_original(bid) then return {} end

local function created(id) return tonumber(redis.call('ZSCORE', batches_index_key(), id)) or 0 end

-- Of those of one time, the last UID counts as the newest.
local function has_newer()
  for _, other in ipairs(redis.call('SMEMBERS', current_key(token))) do
    if (created(other) > created(bid) or (created(other) == created(bid) and other > bid))
      and not wrong_for(token, other) then
      return true
    end
  end
  return false
end

local wrong = wrong_for(token, bid) or (has_newer() and 'many')
if not wrong then return {} end
if fix then redis.call('SREM', current_key(token), bid) end
return { wrong }
