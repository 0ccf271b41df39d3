-- Deletes a label. Its name and its history are kept for a while.
--
-- ARGV     1 namespace, 2 machine, 3 name, 4 now (ms), 5 how the move is published (see tell)
-- Returns  {1}, also if there is no such label
local machine, name, now = ARGV[2], ARGV[3], ARGV[4]
local label = read_label(machine, name)
if refusal_of(label) then return { 1 } end
allow_when_full()
local key = label_key(machine, name)
local freed = metadata_bytes(machine, name)
redis.call('DEL', key, label_metadata_key(machine, name))
redis.call('ZREM', labels_in_key(machine, label.state), name)
redis.call('ZREM', errored_labels_key(machine), name)
redis.call('ZREM', label_names_key(machine), name)
forget(machine, name)
note_move(label, now, quoted(label.state), 'null', '{}')
tell(label, now, quoted(label.state), 'null', ARGV[5])
redis.call('PEXPIRE', label_history_key(machine, name), TOMBSTONE)
redis.call('HSET', key, 'deleted_at', now, 'created_at', label.values[2],
  'moves', exact(label.moves + 1))
redis.call('PEXPIRE', key, TOMBSTONE)
if label.by then
  local account = account_of(label.by)
  charge(account, -freed)
  discharge_after(account, LABEL_BYTES + history_bytes(label.moves), tonumber(now) + TOMBSTONE)
end
return { 1 }
