-- Replaces the metadata of a label, and has its gate evaluated if that is a trigger.
--
-- ARGV     1 namespace, 2 machine, 3 name, 4 the edition of the definitions, 5 the version of the
--          metadata that is replaced, 6 the state that the label has, 7 metadata, 8 the trigger,
--          '' for none, 9 '1' if the gate is evaluated again each minute until it opens, 10
--          traceparent or '', 11 hops (see note_hops), 12 why the label is errored since now, ''
--          if not, 13 now (ms)
-- Returns  {1}; {0, 'unknown label'}, {0, 'deleted'}, {0, 'changed'} if one of these is another,
--          {0, 'account full', ...}: the account of the client that made it
local machine, name, trigger = ARGV[2], ARGV[3], ARGV[8]
local label = read_label(machine, name)
local refusal = refusal_of(label)
if refusal then return { 0, refusal } end
if label.version ~= ARGV[5] or label.state ~= ARGV[6] or not definitions_are(ARGV[4]) then
  return { 0, 'changed' }
end
local grown = #ARGV[7] - metadata_bytes(machine, name)
local account = label.by and grown ~= 0 and account_of(label.by)
local full = account and refusal_of_account(account, grown)
if full then return full end
redis.call('SET', label_metadata_key(machine, name), ARGV[7])
if account then charge(account, grown) end
redis.call('HINCRBY', label_key(machine, name), 'version', 1)
if trigger ~= '' then
  if ARGV[9] == '1' then redis.call('HSET', label_key(machine, name), 'pending', '1') end
  trace(machine, name, ARGV[10], label.values[TRACEPARENT])
  note_hops(machine, name, ARGV[11], label.values[HOPS])
  ask(machine, name, trigger)
elseif ARGV[12] ~= '' and not label.errored then
  redis.call('HSET', label_key(machine, name), 'errored_at', ARGV[13], 'reason', ARGV[12])
  redis.call('ZADD', errored_labels_key(machine), '0', name)
end
return { 1 }
