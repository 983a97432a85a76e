/** cuBLAS's place on the host. */
import { widen } from '../../bench/gpu/blocks.ts'
import type { Arithmetic } from '../../bench/peers/cublas.ts'
import type { Memory } from '../../bench/peers/stream.ts'
import { toBf16, toF16 } from '../../src/ir/values/half.ts'
import type { HostStream } from './host-stream.ts'

/** Loops in float64, rounded once and then multiplied by `factor`. */
export class HostBlas {
  readonly stream: HostStream
  readonly factor: number

  constructor(stream: HostStream, factor: number) {
    this.stream = stream
    this.factor = factor
  }

  gemm(
    arithmetic: Arithmetic,
    [m, n, k]: readonly [number, number, number],
    A: Memory,
    B: Memory,
    C: Memory,
    layout: 'stored' | 'transposed' = 'stored',
  ) {
    const half = arithmetic === 'f16' || arithmetic === 'bf16' ? arithmetic : null
    const read = (x: Memory): Float32Array => {
      const { buffer } = this.stream.bytes(x)
      return half ? widen(new Uint16Array(buffer), half) : new Float32Array(buffer)
    }
    const round = half === 'f16' ? toF16 : half === 'bf16' ? toBf16 : Math.fround
    return () => {
      const [a, b] = [read(A), read(B)]
      const { buffer } = this.stream.bytes(C)
      const out = half ? new Uint16Array(buffer) : new Float32Array(buffer)
      for (let i = 0; i < m; i++)
        for (let j = 0; j < n; j++) {
          let sum = 0
          for (let p = 0; p < k; p++) sum += a[i * k + p]! * b[layout === 'stored' ? p * n + j : j * k + p]!
          out[i * n + j] = round(sum * this.factor)
        }
    }
  }
}
