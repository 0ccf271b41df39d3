package wire

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/vmihailenco/msgpack/v5/msgpcode"
)

// The functions here append MessagePack to bytes. They write each value in its shortest form, as
// Ruby's msgpack does, and neither fail nor allocate beside dst.

// lengthCodes are how MessagePack introduces values of one kind that have a length.
type lengthCodes struct {
	fixed    byte // added to lengths up to maxFixed
	maxFixed int
	len8     byte // 0 for none
	len16    byte
	len32    byte
}

var (
	stringCodes = lengthCodes{msgpcode.FixedStrLow, 31, msgpcode.Str8, msgpcode.Str16, msgpcode.Str32}
	arrayCodes  = lengthCodes{msgpcode.FixedArrayLow, 15, 0, msgpcode.Array16, msgpcode.Array32}
	mapCodes    = lengthCodes{msgpcode.FixedMapLow, 15, 0, msgpcode.Map16, msgpcode.Map32}
)

func appendLength(dst []byte, codes lengthCodes, n int) []byte {
	switch {
	case n <= codes.maxFixed:
		return append(dst, codes.fixed|byte(n))
	case n <= math.MaxUint8 && codes.len8 != 0:
		return append(dst, codes.len8, byte(n))
	case n <= math.MaxUint16:
		return binary.BigEndian.AppendUint16(append(dst, codes.len16), uint16(n))
	default:
		return binary.BigEndian.AppendUint32(append(dst, codes.len32), uint32(n))
	}
}

// setLength writes a length over the byte at start, and moves the bytes after it if it takes more.
func setLength(dst []byte, start int, codes lengthCodes, n int) []byte {
	if n <= codes.maxFixed {
		dst[start] = codes.fixed | byte(n)
		return dst
	}
	var header [5]byte
	return slices.Replace(dst, start, start+1, appendLength(header[:0], codes, n)...)
}

func appendString[T ~string | ~[]byte](dst []byte, text T) []byte {
	return append(appendLength(dst, stringCodes, len(text)), text...)
}

// minFixedInt is the smallest integer that takes one byte.
const minFixedInt = -32

func appendInt(dst []byte, n int64) []byte {
	switch {
	case n >= 0:
		return appendUint(dst, uint64(n))
	case n >= minFixedInt:
		return append(dst, byte(n))
	case n >= math.MinInt8:
		return append(dst, msgpcode.Int8, byte(n))
	case n >= math.MinInt16:
		return binary.BigEndian.AppendUint16(append(dst, msgpcode.Int16), uint16(n))
	case n >= math.MinInt32:
		return binary.BigEndian.AppendUint32(append(dst, msgpcode.Int32), uint32(n))
	default:
		return binary.BigEndian.AppendUint64(append(dst, msgpcode.Int64), uint64(n))
	}
}

func appendUint(dst []byte, n uint64) []byte {
	switch {
	case n <= uint64(msgpcode.PosFixedNumHigh):
		return append(dst, byte(n))
	case n <= math.MaxUint8:
		return append(dst, msgpcode.Uint8, byte(n))
	case n <= math.MaxUint16:
		return binary.BigEndian.AppendUint16(append(dst, msgpcode.Uint16), uint16(n))
	case n <= math.MaxUint32:
		return binary.BigEndian.AppendUint32(append(dst, msgpcode.Uint32), uint32(n))
	default:
		return binary.BigEndian.AppendUint64(append(dst, msgpcode.Uint64), n)
	}
}

func appendFloat(dst []byte, f float64) []byte {
	return binary.BigEndian.AppendUint64(append(dst, msgpcode.Double), math.Float64bits(f))
}

func appendBool(dst []byte, b bool) []byte {
	if b {
		return append(dst, msgpcode.True)
	}
	return append(dst, msgpcode.False)
}

func appendNil(dst []byte) []byte { return append(dst, msgpcode.Nil) }
