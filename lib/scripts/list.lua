-- Tells some of the keys that hold strings, as locks do, and where to go on. ARGV: "CURSOR PREFIX".
-- "CURSOR LEN KEY LEN KEY ...": where to go on (0: that was all), and each key behind its length.
local cursor, prefix = string.match(ARGV[1], '^(%d+) (.*)$')
local pattern = string.gsub(prefix, '[%*%?%[%\\]', '\\%0') .. '*'
local found = redis.pcall('SCAN', cursor, 'MATCH', pattern, 'COUNT', 500, 'TYPE', 'string')
if found.err then return found end
local keys = {}
for _, key in ipairs(found[2]) do
    -- No lock has a longer name.
    if #key <= 512 then table.insert(keys, string.format(' %.0f ', #key) .. key) end
end
return found[1] .. table.concat(keys)
