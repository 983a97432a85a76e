import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { main } from '../../src/cli/index.ts'
import { onSimulatedDevices } from '../support/simulated-device.ts'

export interface Outcome {
  readonly code: number
  readonly out: string
  readonly err: string
}

export interface Host {
  readonly stdin?: string
  readonly color?: boolean
  /** Told lines of progress, as a terminal is. */
  readonly progress?: (line: string) => void
  /** Whether progress is written to standard error as lines. */
  readonly progressLines?: boolean
  readonly env?: Readonly<Record<string, string>>
}

/** One command line, in this process; what a search measures is simulated. */
export const spt = (argv: readonly string[], host: Host = {}): Promise<Outcome> =>
  argv[0] === 'tune' ? onSimulatedDevices(() => told(argv, host)) : told(argv, host)

async function told(argv: readonly string[], host: Host): Promise<Outcome> {
  let out = ''
  let err = ''
  const color = host.color ?? false
  const code = await main(argv, {
    out: (text) => {
      out += text
    },
    err: (text) => {
      err += text
    },
    stdin: async () => host.stdin ?? '',
    color: { out: color, err: color },
    env: host.env ?? {},
    ...(host.progress && { progress: host.progress }),
    ...(host.progressLines && { progressLines: true }),
  })
  return { code, out, err }
}

/** A separate folder with files in it. */
export class Folder {
  readonly path = mkdtempSync(join(tmpdir(), 'spt-'))

  file(name: string, content: string | Uint8Array): string {
    const path = join(this.path, name)
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, content)
    return path
  }

  at(name: string): string {
    return join(this.path, name)
  }

  /** Text without the folder's own name, which differs from run to run. */
  plain(text: string): string {
    return text.replaceAll(this.path, 'FOLDER')
  }

  remove(): void {
    rmSync(this.path, { recursive: true, force: true })
  }
}

/** A matrix times a dense one, with a schedule for GPUs and some that are not legal. */
export const PROGRAM = `kernel mul(m: size, n: size, d: size, alpha: f32) {
  axis i  = dense_fixed(m)
  axis j  = sparse_variable(i, n)
  axis jd = dense_fixed(n)
  axis f  = dense_fixed(d)
  buffer A: f32[i, j]  in
  buffer B: f32[jd, f] in
  buffer C: f32[i, f]  out
  iterate sum [i, j, f] as SRS { C[i, f] += alpha * A[i, j] * B[j, f] }
}

schedule mul.gpu(rows = 4) {
  reorder (i, f, j)
  split i by rows -> (io, ii)
  reorder (io, f, ii, j)
  bind io to block.x, ii to thread.y, f to block.y
}

schedule mul.blocks(b) { split i by b }
`

/** 3 × 4 with an empty row. */
export const MATRIX = `%%MatrixMarket matrix coordinate real general
3 4 4
1 1 1.5
1 3 -2
3 2 4
3 4 0.5
`
