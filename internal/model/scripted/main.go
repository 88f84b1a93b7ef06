package scripted

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
)

const usageLine = "usage: scripted [--url-file FILE] [--log FILE] [--addr 127.0.0.1:0] [--stdin] SCRIPT"

// Main serves a script file as a process of its own and gives the exit code. It prints the base URL, writes it to
// --url-file once it listens, and ends on SIGTERM or SIGINT and, with --stdin, when its standard input is closed.
func Main(args []string) int {
	flags := flag.NewFlagSet("scripted", flag.ContinueOnError)
	flags.Usage = func() { fmt.Fprintln(os.Stderr, usageLine) }
	urlFile := flags.String("url-file", "", "file to write the base URL to")
	log := flags.String("log", "", "file to append requests to")
	addr := flags.String("addr", "127.0.0.1:0", "loopback address to listen on")
	stdin := flags.Bool("stdin", false, "end when standard input is closed")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	if flags.NArg() != 1 {
		flags.Usage()
		return 2
	}
	if err := serve(flags.Arg(0), *urlFile, *log, *addr, *stdin); err != nil {
		fmt.Fprintln(os.Stderr, "scripted:", err)
		return 1
	}
	return 0
}

func serve(path, urlFile, log, addr string, stdin bool) error {
	end := make(chan os.Signal, 2)
	signal.Notify(end, syscall.SIGTERM, syscall.SIGINT)
	defer signal.Stop(end)
	script, err := Load(path)
	if err != nil {
		return err
	}
	s, err := Start(script, LogFile(log), Address(addr), WithoutBodies())
	if err != nil {
		return err
	}
	fmt.Println(s.URL)
	if urlFile != "" {
		if err := writeWhole(urlFile, s.URL+"\n"); err != nil {
			return errors.Join(err, s.Close())
		}
	}
	if stdin {
		go func() {
			io.Copy(io.Discard, os.Stdin) // however it ends, it is the end
			end <- syscall.SIGTERM
		}()
	}
	<-end
	return s.Close()
}

// writeWhole replaces a file, so that whoever waits for it never reads half a URL.
func writeWhole(path, text string) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), ".scripted-*")
	if err != nil {
		return err
	}
	_, err = tmp.WriteString(text)
	if err = errors.Join(err, tmp.Close()); err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil {
		os.Remove(tmp.Name())
	}
	return err
}
