#include "textflag.h"

// func vfork(trap, a1, a2 uintptr) (pid uintptr, errno syscall.Errno)
TEXT ·vfork(SB),NOSPLIT,$0-40
	MOVD	trap+0(FP), R8
	MOVD	a1+8(FP), R0
	MOVD	a2+16(FP), R1
	MOVD	$0, R2
	MOVD	$0, R3
	MOVD	$0, R4
	SVC
	MOVD	ZR, errno+32(FP)
	CMN	$4095, R0
	BCC	done
	NEG	R0, R0
	MOVD	R0, errno+32(FP)
	MOVD	$-1, R0
done:
	MOVD	R0, pid+24(FP)
	RET
