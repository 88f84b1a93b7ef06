package sandbox

import (
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/git-tilth/git-tilth/internal/text"
)

// lay mounts the missing layers of a view, each once, because two mounts over one layer would not see each other's
// writes. Each view has a copy of the mount. Without support for layers, writes go to the directory itself.
func lay(made map[string]bool, ops []string) {
	for i := 0; i+2 < len(ops); i += 3 {
		if ops[i] != opLayer {
			continue
		}
		layer, under, _ := strings.Cut(ops[i+2], "\n")
		ops[i+2] = layer
		if is, tried := made[layer]; !tried || is && !there(layerMount(layer)) { // removed since, and needed again
			if made[layer] = mountLayer(ops[i+1], layer, under) == nil; !made[layer] {
				_ = os.Remove(layerMount(layer))
			}
		}
		if !made[layer] {
			ops[i] = opWrite
		}
	}
}

// Layered reports whether all writes over a layer went into it.
func Layered(layer string) bool {
	return there(layerMount(layer)) && !there(filepath.Join(layer, bypassed))
}

// bypassed is a file in a layer. It means that without namespaces a command wrote to the directory below.
const bypassed = "bypassed"

// bypass writes that file before such a write.
func bypass(layer string) error {
	err := os.MkdirAll(layer, 0o700)
	if err == nil {
		err = os.WriteFile(filepath.Join(layer, bypassed), nil, 0o600)
	}
	return err
}

// layerMount returns the path at which a layer is mounted. It is in the layer, so that removing the layer outside the
// sandbox also removes the mount.
func layerMount(layer string) string { return filepath.Join(layer, "mount") }

// mountLayer mounts a directory with a layer over it. Between the two it mounts another layer with accepted writes.
func mountLayer(path, layer, under string) error {
	upper, work := Written(layer), filepath.Join(layer, "work")
	for _, dir := range []string{upper, work, layerMount(layer)} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	escape := strings.NewReplacer(`\`, `\\`, ":", `\:`, ",", `\,`).Replace
	lower := escape(path)
	if under != "" {
		accepted, _ := filepath.Glob(text.GlobQuote(filepath.Dir(under)) + "/" + Accepted + "*/" + filepath.Base(under))
		for _, other := range append([]string{under}, accepted...) {
			if there(Written(other)) {
				lower = escape(Written(other)) + ":" + lower
			}
		}
	}
	return unix.Mount("overlay", layerMount(layer), "overlay", unix.MS_NOSUID|unix.MS_NODEV,
		"userxattr,index=off,lowerdir="+lower+",upperdir="+escape(upper)+",workdir="+escape(work))
}
