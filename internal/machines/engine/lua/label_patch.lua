-- Replaces the metadata of a label, and has its gate evaluated if that is a trigger.
--
-- ARGV     namespace; patchArgs of labels.go
-- Returns  {1}; {0, 'unknown label'}, {0, 'deleted'}, {0, 'changed'} if one of these is another,
--          {0, 'account full', ...}: the account of the client that made it
local machine, name, edition, version, state, metadata, trigger, pending, traceparent, hops, paused,
  now = unpack(ARGV, 2, 13)
local label = read_label(machine, name)
local refusal = refusal_of(label)
if refusal then return { 0, refusal } end
if label.version ~= version or label.state ~= state or not definitions_are(edition) then
  return { 0, 'changed' }
end
local grown = #metadata - metadata_bytes(machine, name)
local account = label.by and grown ~= 0 and account_of(label.by)
local full = account and refusal_of_account(account, grown)
if full then return full end
redis.call('SET', label_metadata_key(machine, name), metadata)
if account then charge(account, grown) end
redis.call('HINCRBY', label_key(machine, name), 'version', 1)
if trigger ~= '' then
  if pending == '1' then redis.call('HSET', label_key(machine, name), 'pending', '1') end
  trace(machine, name, traceparent, label.values[TRACEPARENT])
  note_hops(machine, name, hops, label.values[HOPS])
  ask(machine, name, trigger)
elseif paused ~= '' and not label.errored then
  redis.call('HSET', label_key(machine, name), 'errored_at', now, 'reason', paused)
  redis.call('ZADD', errored_labels_key(machine), '0', name)
end
return { 1 }
