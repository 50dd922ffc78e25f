-- Counts one request against all limits, or against none when one of them is used up.
-- Keys: one counter for each limit. Arguments: requests and milliseconds of each limit, and 0 when nothing is to be counted.
-- Answers the position of the limit that is used up, or 0 and what is left of each.
-- The arithmetic is that of window.rs: what falls out of the window falls out of the bucket before, bit by bit.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local counters, answer = {}, {0}
for i, key in ipairs(KEYS) do
    local requests, window = tonumber(ARGV[2 * i - 1]), tonumber(ARGV[2 * i])
    local stored = redis.call('HMGET', key, 'bucket', 'current', 'previous')
    local bucket, current, previous = math.floor(now / window), 0, 0
    local passed = bucket - (tonumber(stored[1]) or 0)
    if passed == 0 then
        current, previous = tonumber(stored[2]), tonumber(stored[3])
    elseif passed == 1 then
        previous = tonumber(stored[2])
    end
    local used = previous * (window - now % window) + (current + 1) * window
    if used > requests * window then
        return {i}
    end
    counters[i] = {bucket, current + 1, previous}
    answer[i + 1] = math.floor((requests * window - used) / window)
end
if ARGV[2 * #KEYS + 1] == '0' then
    return answer
end
for i, key in ipairs(KEYS) do
    local counter = counters[i]
    redis.call('HSET', key, 'bucket', counter[1], 'current', counter[2], 'previous', counter[3])
    redis.call('PEXPIRE', key, 2 * ARGV[2 * i])
end
return answer
