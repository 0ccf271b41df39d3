-- Makes a label.
--
-- ARGV     namespace; createArgs of labels.go
-- Returns  {1}; {0, 'exists'}, {0, 'deleted'}, {0, 'changed'} (the definitions), {0, 'closing'} if
--          other definitions without that state are about to come, {0, 'account full', ...}: the
--          client's account
-- Keeps    a label that is not deleted in the list of one state, and of its machine
local machine, name, now, edition, state, metadata, trigger, publication, traceparent, hops, by =
  unpack(ARGV, 2, 12)
if not definitions_are(edition) then return { 0, 'changed' } end
local label = read_label(machine, name)
if label then return { 0, label.deleted and 'deleted' or 'exists' } end
if is_closing(machine, state) then return { 0, 'closing' } end
local account, bytes = account_of(by), LABEL_BYTES + #metadata
local full = refusal_of_account(account, bytes)
if full then return full end
redis.call('SET', label_metadata_key(machine, name), metadata)
redis.call('HSET', label_key(machine, name), 'state', state, 'created_at', now, 'entered_at', now,
  'by', account.client)
redis.call('ZADD', labels_in_key(machine, state), '0', name)
redis.call('ZADD', label_names_key(machine), '0', name)
tell({ machine = machine, name = name }, now, 'null', quoted(state), publication)
note_hops(machine, name, hops)
charge(account, bytes)
if trigger ~= '' then
  trace(machine, name, traceparent)
  ask(machine, name, trigger)
end
return { 1 }
