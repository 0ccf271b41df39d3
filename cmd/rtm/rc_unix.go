//go:build unix

package main

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// writableByOthers are the mode bits that let users other than the owner change a file.
const writableByOthers fs.FileMode = 0o022

// checkOwn refuses a file that another user may have written.
func checkOwn(file *os.File) error {
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if owner, ok := info.Sys().(*syscall.Stat_t); ok && owner.Uid != uint32(os.Geteuid()) {
		return errors.New("it belongs to another user; copy it, or give the URL with -b")
	}
	if info.Mode()&writableByOthers != 0 {
		return errors.New("others may write to it; `chmod go-w .rtmrc` ends that")
	}
	return nil
}
