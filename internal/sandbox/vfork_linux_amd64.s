#include "textflag.h"

// func vfork(trap, a1, a2 uintptr) (pid uintptr, errno syscall.Errno)
TEXT ·vfork(SB),NOSPLIT|NOFRAME,$0-40
	MOVQ	trap+0(FP), AX
	MOVQ	a1+8(FP), DI
	MOVQ	a2+16(FP), SI
	MOVQ	$0, DX
	MOVQ	$0, R10
	MOVQ	$0, R8
	POPQ	R12 // where it returns to: the child writes there
	SYSCALL
	PUSHQ	R12
	MOVQ	$0, errno+32(FP)
	CMPQ	AX, $0xfffffffffffff001
	JLS	done
	NEGQ	AX
	MOVQ	AX, errno+32(FP)
	MOVQ	$-1, AX
done:
	MOVQ	AX, pid+24(FP)
	RET
