// Package bridge holds what the bridges share: secrets of their own, ids in the shape of UUIDs, and a bound for each network.
package bridge

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
)

// Derive returns the secret for one purpose of a bridge's secret. Secrets for different purposes or numbers say nothing about
// each other.
func Derive(secret [32]byte, purpose string, number uint32) [32]byte {
	h := hmac.New(sha256.New, secret[:])
	h.Write([]byte(purpose))
	h.Write([]byte{0})
	h.Write(binary.BigEndian.AppendUint32(nil, number))
	return [32]byte(h.Sum(nil))
}

// Block returns the block cipher of a key.
func Block(key [32]byte) cipher.Block {
	b, err := aes.NewCipher(key[:])
	if err != nil {
		panic(err) // only for a key of another length
	}
	return b
}

// UUID returns the lower-case text of 128 bits in the shape of a UUID.
func UUID(b [16]byte) string {
	s := hex.EncodeToString(b[:])
	return s[:8] + "-" + s[8:12] + "-" + s[12:16] + "-" + s[16:20] + "-" + s[20:]
}

// ReadUUID reads what [UUID] writes, and nothing else.
func ReadUUID(s string) (b [16]byte, ok bool) {
	if len(s) != 36 {
		return b, false
	}
	n, err := hex.Decode(b[:], []byte(s[:8]+s[9:13]+s[14:18]+s[19:23]+s[24:]))
	return b, err == nil && n == len(b) && UUID(b) == s
}
