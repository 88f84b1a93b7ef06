package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/git-tilth/git-tilth/internal/testsize"
)

// TestSlurmDrainsARemote runs the array of docs/fleet/slurm.sh on one node, preempts a job by requeue, and compares the
// result with the remote's reflog. It needs Debian's slurm-wlm, takes minutes, and runs only in CI.
func TestSlurmDrainsARemote(t *testing.T) {
	if !testsize.InCI() {
		return
	}
	t.Parallel()
	d := newDrain(t, testsize.Of(4, 12), 0, 1)
	d.killed["slurm"] = true // a call that a preemption interrupts is repeated
	d.slurm()
	script, err := filepath.Abs("../../docs/fleet/slurm.sh")
	if err != nil {
		t.Fatal(err)
	}
	d.env = append(d.env, "TILTH_API_KEY=slurm", "TILTH_CLONES="+filepath.Join(d.dir, "clones"), "TILTH_LEASE=20s")
	out, code := d.try("sbatch", "--parsable", "--output="+filepath.Join(d.dir, "job-%a.log"), script)
	if code != 0 {
		t.Fatal(out)
	}
	job := strings.TrimSpace(out)

	preempted := ""
	d.until("a job at work on a session", func() bool {
		d.mu.Lock()
		heard := len(d.calls)
		d.mu.Unlock()
		tasks, _ := d.try("squeue", "--noheader", "--array", "--states=RUNNING", "--format=%i")
		if heard > 2 && len(strings.Fields(tasks)) > 1 {
			preempted = strings.Fields(tasks)[1]
		}
		return preempted != ""
	})
	if out, code := d.try("scontrol", "requeue", preempted); code != 0 {
		t.Fatal(out)
	}
	d.until("the end of the array", func() bool {
		left, code := d.try("squeue", "--noheader", "--array", "--jobs="+job, "--format=%i %T")
		return code != 0 || strings.TrimSpace(left) == ""
	})
	for _, id := range d.ids {
		d.check(id)
	}
	again, _ := d.try("scontrol", "--oneliner", "show", "job", preempted)
	if !strings.Contains(again, "Restarts=1") || !strings.Contains(again, "ExitCode=0:0") {
		t.Errorf("%s: %s", preempted, again)
	}
	if t.Failed() {
		logs, _ := filepath.Glob(filepath.Join(d.dir, "job-*.log"))
		for _, name := range logs {
			data, _ := os.ReadFile(name)
			t.Logf("%s\n%s", name, data)
		}
	}
}

// until waits for a condition; Slurm takes seconds.
func (d *drain) until(what string, met func() bool) {
	d.t.Helper()
	end := time.Now().Add(8 * time.Minute)
	for tick := time.Tick(time.Second); !met(); <-tick {
		if time.Now().After(end) {
			out, _ := d.try("squeue", "--array")
			d.t.Fatalf("%s did not come about\n%s", what, out)
		}
	}
}

// slurm starts a controller and a node of this user's own.
func (d *drain) slurm() {
	dir := filepath.Join(d.dir, "slurm")
	for _, sub := range []string{"state", "spool"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
			d.t.Fatal(err)
		}
	}
	host, err := os.Hostname()
	if err != nil {
		d.t.Fatal(err)
	}
	me, err := user.Current()
	if err != nil {
		d.t.Fatal(err)
	}
	conf := filepath.Join(dir, "slurm.conf")
	text := fmt.Sprintf(`ClusterName=tilth
SlurmctldHost=%[1]s(127.0.0.1)
SlurmctldPort=%[3]d
SlurmdPort=%[4]d
SlurmUser=%[5]s
SlurmdUser=%[5]s
AuthType=auth/none
AuthInfo=cred_expire=5
CredType=cred/none
StateSaveLocation=%[2]s/state
SlurmdSpoolDir=%[2]s/spool
SlurmctldPidFile=%[2]s/slurmctld.pid
SlurmdPidFile=%[2]s/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/linear
SchedulerType=sched/builtin
SwitchType=switch/none
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
KillWait=15
ReturnToService=2
NodeName=%[1]s NodeAddr=127.0.0.1 CPUs=1 State=UNKNOWN
PartitionName=main Nodes=%[1]s Default=YES MaxTime=INFINITE State=UP OverSubscribe=FORCE:4
`, host, dir, freePort(d.t), freePort(d.t), me.Username)
	if err := os.WriteFile(conf, []byte(text), 0o644); err != nil {
		d.t.Fatal(err)
	}
	d.env = append(d.env, "SLURM_CONF="+conf)
	for _, args := range [][]string{{"slurmctld", "-D", "-c"}, {"slurmd", "-D", "-N", host}} {
		log, err := os.Create(filepath.Join(dir, args[0]+".log"))
		if err != nil {
			d.t.Fatal(err)
		}
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Env, cmd.Stdout, cmd.Stderr = append(d.env, "PATH="+os.Getenv("PATH")+":/usr/sbin"), log, log
		if err := cmd.Start(); err != nil {
			d.t.Fatalf("%v (Debian's slurm-wlm has it)", err)
		}
		d.t.Cleanup(func() {
			_ = cmd.Process.Signal(syscall.SIGTERM)
			_ = cmd.Wait()
			log.Close()
		})
	}
	d.until("a node", func() bool {
		out, _ := d.try("sinfo", "--noheader", "--format=%T")
		return strings.TrimSpace(out) == "idle"
	})
}

func freePort(t *testing.T) int {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}
