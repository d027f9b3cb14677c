<?php
// Verifies passes of Anteroom, with PHP 8.1 and its extension openssl. With a good pass a request may go to the application, in every
// other case it goes to Anteroom.
//
// Run as a program, it reads ticket/pass/testdata/vectors.json and says which vectors it reads wrongly.

namespace Anteroom;

function decode(string $text): string|false
{
    return base64_decode(strtr($text, '-_', '+/'), true);
}

// The encoded header of a key's passes. Others are refused unread, so that no pass chooses its algorithm.
function headOf(string $alg, string $kid): string
{
    return rtrim(strtr(base64_encode("{\"alg\":\"$alg\",\"typ\":\"JWT\",\"kid\":\"$kid\"}"), '+/', '-_'), '=');
}

// Keys of what "anteroom key pass --edge NAME" shows, for rooms with pass_edge (HS256).
function secrets(array $byKid): array
{
    $keys = [];
    foreach ($byKid as $kid => $secret) {
        $keys[headOf('HS256', $kid)] = fn($signed, $signature) => hash_equals(hash_hmac('sha256', $signed, $secret, true), $signature);
    }
    return $keys;
}

// Keys of /.well-known/anteroom/pass.pem (ES256).
function pem(string $text): array
{
    $keys = [];
    preg_match_all('/kid: (\S+)\s+(-----BEGIN PUBLIC KEY-----.+?-----END PUBLIC KEY-----)/s', $text, $found, PREG_SET_ORDER);
    foreach ($found as [, $kid, $key]) {
        $keys[headOf('ES256', $kid)] = fn($signed, $signature) => strlen($signature) === 64 &&
            openssl_verify($signed, der($signature), $key, OPENSSL_ALGO_SHA256) === 1;
    }
    return $keys;
}

// The two numbers of a signature, as openssl takes them.
function der(string $signature): string
{
    $numbers = '';
    foreach (str_split($signature, 32) as $number) {
        $number = ltrim($number, "\0");
        if ($number === '' || ord($number[0]) > 127) {
            $number = "\0" . $number;
        }
        $numbers .= "\x02" . chr(strlen($number)) . $number;
    }
    return "\x30" . chr(strlen($numbers)) . $numbers;
}

// What the pass in a Cookie header says, or null if there is no good one.
function verify(string $cookies, array $keys, string $zone, string $room, string $issuer = 'anteroom', string $name = '__anteroom_pass', ?int $now = null): ?array
{
    $now ??= time();
    $pairs = array_map(fn($pair) => trim($pair, " \t"), explode(';', $cookies));
    $found = array_values(array_filter($pairs, fn($pair) => str_starts_with($pair, "$name=")));
    $parts = count($found) === 1 ? explode('.', substr($found[0], strlen($name) + 1)) : [];
    if (count($parts) !== 3 || strlen($found[0]) > 1024 + strlen($name) + 1 || !isset($keys[$parts[0]])) {
        return null;
    }
    [$signature, $payload] = [decode($parts[2]), decode($parts[1])];
    if ($signature === false || $payload === false || !$keys[$parts[0]]("$parts[0].$parts[1]", $signature)) {
        return null;
    }
    $c = json_decode($payload, true);
    $wanted = is_array($c) && ($c['use'] ?? '') === 'pass' && ($c['iss'] ?? '') === $issuer && ($c['aud'] ?? '') === $zone && ($c['room'] ?? '') === $room;
    return $wanted && !empty($c['sid']) && $c['nbf'] <= $now && $now < $c['exp'] ? $c : null;
}

if (isset($argv[1]) && realpath($argv[0]) === __FILE__) {
    $vectors = json_decode(file_get_contents($argv[1]), true);
    $keys = ['HS256' => secrets(array_column($vectors['secrets'], 'secret', 'kid')), 'ES256' => pem($vectors['pem'])];
    $read = $wrong = 0;
    foreach ($vectors['cases'] as $case) {
        if (isset($keys[$case['alg']])) {
            $read++;
            $claims = verify($case['cookie'], $keys[$case['alg']], $vectors['audience'], $vectors['room'], $vectors['issuer'], now: $vectors['now']);
            if (($claims !== null) !== $case['good']) {
                $wrong++;
                echo "wrong: $case[alg] $case[name]\n";
            }
        }
    }
    echo "$read vectors, $wrong wrong\n";
    exit($wrong > 0 || $read === 0 ? 1 : 0);
}
