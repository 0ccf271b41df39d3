package rdb

import (
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"
)

// SlotCount is how many slots a cluster has.
const SlotCount = 16384

// SlotOf is the slot of a key: a number below [SlotCount] that only depends on the part in braces,
// the hash tag, if there is one.
func SlotOf(key string) int {
	if _, after, ok := strings.Cut(key, "{"); ok {
		if tag, _, ok := strings.Cut(after, "}"); ok && tag != "" {
			key = tag
		}
	}
	return int(crc16(key)) % SlotCount
}

// crc16 is CRC-16/XMODEM: polynomial 0x1021, from 0, the highest bit first.
func crc16(text string) (sum uint16) {
	for i := range len(text) {
		sum ^= uint16(text[i]) << 8
		for range 8 {
			carry := sum&0x8000 != 0
			sum <<= 1
			if carry {
				sum ^= 0x1021
			}
		}
	}
	return sum
}

// SlotTag returns the hash tag of a partition. CRC-16 is linear, so the slots of plain numbers lie
// together, and some nodes would have no partition. Tags are chosen so that partition i has a slot
// in the middle half of the i-th part of all slots: nodes with equal parts of the slots have equal
// numbers of partitions, if they divide. Tags must never change.
func SlotTag(partition, partitions int) string {
	first, end := partition*SlotCount/partitions, (partition+1)*SlotCount/partitions
	quarter := (end - first) / 4
	for n := int64(0); ; n++ {
		tag := fmt.Sprintf("p%02d.%s", partition, strconv.FormatInt(n, 36))
		if slot := SlotOf(tag); first+quarter <= slot && slot < end-quarter {
			return tag
		}
	}
}

// PartitionOf is the number of the partition, of so many, that has a topic, a subscriber or a
// job type of a name: by its FNV-1a hash of 64 bits. It must never change. A bus without partitions
// has number 0.
func PartitionOf(name string, partitions int) int {
	if partitions <= 1 {
		return 0
	}
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(name))
	return int(hash.Sum64() % uint64(partitions))
}
