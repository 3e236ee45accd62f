-- Gives the fence counter at least this value. KEYS: fence counter. ARGV: value, the counter's ttl in ms.
-- The counter as it is now.
local last = redis.pcall('GET', KEYS[1])
if type(last) == 'table' then return last end
local fence = tonumber(ARGV[1])
local now = last and tonumber(last) or 0
if now >= fence then return now end
local set = redis.pcall('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
if set.err then return set end
return fence
