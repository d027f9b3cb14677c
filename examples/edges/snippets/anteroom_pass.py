"""Verifies passes of Anteroom. With a good pass a request may go to the application, in every other case it goes to Anteroom.

Run as a program, it reads ticket/pass/testdata/vectors.json and says which vectors it reads wrongly.
"""
import base64
import hashlib
import hmac
import json
import sys
import time


def decode(text):
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def head_of(alg, kid):
    """The encoded header of a key's passes. Others are refused unread, so that no pass chooses its algorithm."""
    text = '{"alg":"%s","typ":"JWT","kid":"%s"}' % (alg, kid)
    return base64.urlsafe_b64encode(text.encode()).rstrip(b"=").decode()


def secrets(by_kid):
    """Keys of what "anteroom key pass --edge NAME" shows, for rooms with pass_edge (HS256)."""
    def key(secret):
        return lambda signed, signature: hmac.compare_digest(hmac.new(secret.encode(), signed, hashlib.sha256).digest(), signature)
    return {head_of("HS256", kid): key(secret) for kid, secret in by_kid.items()}


def jwks(key_set):
    """Keys of /.well-known/anteroom/jwks.json (ES256). Needs the package cryptography."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric import ec, utils
    from cryptography.hazmat.primitives.hashes import SHA256

    def key(k):
        x, y = (int.from_bytes(decode(k[name]), "big") for name in "xy")
        public = ec.EllipticCurvePublicNumbers(x, y, ec.SECP256R1()).public_key()

        def good(signed, signature):
            r, s = (int.from_bytes(part, "big") for part in (signature[:32], signature[32:]))
            try:
                public.verify(utils.encode_dss_signature(r, s), signed, ec.ECDSA(SHA256()))
            except InvalidSignature:
                return False
            return len(signature) == 64
        return good
    return {head_of("ES256", k["kid"]): key(k) for k in key_set["keys"] if k.get("alg") == "ES256" and k.get("crv") == "P-256"}


def verify(cookies, keys, zone, room, issuer="anteroom", name="__anteroom_pass", now=None):
    """Returns what the pass in a Cookie header says, or None if there is no good one."""
    found = [pair.strip()[len(name) + 1:] for pair in cookies.split(";") if pair.strip().startswith(name + "=")]
    if len(found) != 1 or len(found[0]) > 1024 or found[0].count(".") != 2:
        return None
    head, payload, signature = found[0].split(".")
    try:
        if head not in keys or not keys[head]((head + "." + payload).encode(), decode(signature)):
            return None
        claims = json.loads(decode(payload))
    except ValueError:
        return None
    now = int(time.time() if now is None else now)
    wanted = claims.get("use") == "pass" and claims.get("iss") == issuer and claims.get("aud") == zone and claims.get("room") == room
    return claims if wanted and claims.get("sid") and claims["nbf"] <= now < claims["exp"] else None


if __name__ == "__main__":
    with open(sys.argv[1]) as file:
        vectors = json.load(file)
    keys = {"HS256": secrets({s["kid"]: s["secret"] for s in vectors["secrets"]})}
    if "--hs256" not in sys.argv:
        keys["ES256"] = jwks(vectors["jwks"])
    read = wrong = 0
    for case in vectors["cases"]:
        if case["alg"] in keys:
            read += 1
            claims = verify(case["cookie"], keys[case["alg"]], vectors["audience"], vectors["room"], vectors["issuer"], now=vectors["now"])
            if (claims is not None) != case["good"]:
                wrong += 1
                print("wrong:", case["alg"], case["name"])
    print(read, "vectors,", wrong, "wrong")
    sys.exit(wrong > 0 or read == 0)
