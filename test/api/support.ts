import { type Kernel, load, SptError, type SptProgram } from '../../src/node.ts'

/** C = A B, A sparse. */
export const MUL = `kernel mul(m: size, n: size, d: size) {
  axis i  = dense_fixed(m)
  axis j  = sparse_variable(i, n)
  axis jd = dense_fixed(n)
  axis f  = dense_fixed(d)
  buffer A: f32[i, j]  in
  buffer B: f32[jd, f] in
  buffer C: f32[i, f]  out
  iterate sum [i, j, f] as SRS {
    C[i, f] += A[i, j] * B[j, f]
  }
}`

export const TEXT = `${MUL}

format bsr(b) over (i, j) {
  axis io = dense_fixed(ceildiv(i, b))
  axis jo = sparse_variable(io, ceildiv(j, b))
  axis ii = dense_fixed(b)
  axis ji = dense_fixed(b)
  map (i, j) -> (i / b, j / b, i % b, j % b)
  inverse (io, jo, ii, ji) -> (io * b + ii, jo * b + ji)
}

schedule mul.gpu(rows = 4) {
  reorder (i, f, j)
  split i by rows -> (io, ii)
  reorder (io, f, ii, j)
  bind io to block.x, f to block.y, ii to thread.x
  cache_write C at ii in register
}

schedule mul.blocked(b) {
  A as bsr(b)
}
`

export const program = (): Promise<SptProgram> => load(TEXT)
export const kernel = async (): Promise<Kernel> => (await program()).kernel()

/**
 * The `SptError` that a call throws; fails where it throws nothing, or anything else, or where texts that it is about are not
 * with it.
 */
export async function errorOf(call: () => unknown): Promise<SptError> {
  let result: unknown
  try {
    result = await call()
  } catch (error) {
    if (!(error instanceof SptError)) throw error
    const spans = error.diagnostics.flatMap((d) => [d.span, ...(d.labels ?? []).map((l) => l.span)])
    const missing = spans.filter((s) => s && !error.sources?.has(s.source))
    if (missing.length > 0) throw new Error(`no text of ${JSON.stringify(missing)} with ${error.message}`)
    return error
  }
  throw new Error(`accepted, and gave ${String(result)}`)
}

/** Code and message of what a call throws, as `errorOf`. */
export const complaint = async (call: () => unknown): Promise<string> => (await errorOf(call)).message
