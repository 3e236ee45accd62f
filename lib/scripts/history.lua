-- For how long the server's data have had their present history: since the first login that saw it, whoever's it was.
-- A process that took over no data keeps its history when it gives it another name.
-- KEYS: the mark. ARGV: run_id, master_replid, and 1 if the data may have been another server's.
-- Its age in microseconds, as text; 0: it is new to all.
local call, us = redis.pcall, nil
--@ include clock.lua
local found = call('GET', KEYS[1])
if type(found) == 'table' then return found end
local run, data, since = string.match(found or '', '^(%w+) (%w+) (%d+)$')
if run == ARGV[1] and (data == ARGV[2] or ARGV[3] == '0') then
  return string.format('%.0f', tonumber(us) - tonumber(since))
end
local set = call('SET', KEYS[1], ARGV[1] .. ' ' .. ARGV[2] .. ' ' .. us)
return set.err and set or '0'
