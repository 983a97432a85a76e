/** The Python peers: one process for all cases, files in, one line of JSON for each result out. */
import { spawn, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Entry } from '../gpu/case.ts'
import type { Times } from '../gpu/timing.ts'
import { packageFile } from '../support.ts'

export interface PythonCase {
  readonly id: string
  /** Arrays lie at `FILE-indptr`, `FILE-indices` (i32) and `FILE-values`. */
  readonly file: string
}

/** A case of groups: pairs at `FILE-groups`, `FILE-rows`, `FILE-columns` (i32) and `FILE-values`. */
export interface GroupCase extends PythonCase {
  readonly kind: string
  readonly groups: number
  readonly rows: number
  readonly columns: number
  readonly inputs: number
  readonly outputs: number
  readonly type: string
}

/** A layer: weights in f16 [outputs, inputs] at `FILE-values`, and with zeros at `FILE-2of4`; two layers have no file. */
export interface LayerCase extends PythonCase {
  readonly what: 'dense' | '2:4' | '2:4 searched' | 'network'
  readonly outputs: number
  readonly inputs: number
  readonly columns: number
}

/** Logits of a router [tokens, experts] lie at `FILE-logits` (f32). */
export interface ExpertCase extends PythonCase {
  readonly experts: number
  readonly tokens: number
  readonly top: number
  readonly inputs: number
  readonly hidden: number
  readonly outputs: number
}

/** A rectified layer: its first `kept` inputs lie at `FILE-x` and `FILE-u`. */
export interface RectifiedCase extends PythonCase {
  readonly kept: number
  readonly tokens: number
  readonly inputs: number
  readonly hidden: number
  readonly outputs: number
}

/** A training step: the mask [outputs, inputs] lies at `FILE-mask` (f16). */
export interface TrainingCase extends PythonCase {
  readonly tokens: number
  readonly inputs: number
  readonly outputs: number
  readonly rate: number
}

/** Causal attention: blocks and columns lie at `FILE-blocks` and `FILE-columns`, or ends of sequences at `FILE-ends` (i32). */
export interface AttentionCase extends PythonCase {
  readonly b: number | null
  readonly type: string
  readonly tokens: number
  readonly heads: number
  readonly d: number
}

/** A step of a model: inputs lie at `FILE-NAME`, the results of sparsetile at `FILE-ours-NAME`. */
export interface ModelCase extends PythonCase {
  readonly model: string
  readonly sizes: Readonly<Record<string, number>>
  readonly results: readonly string[]
}

/** A case of blocks. */
export interface BlockCase extends PythonCase {
  readonly size: number
  readonly b: number
  readonly width: number
}

export interface PythonResult {
  readonly id: string
  readonly name: string
  readonly result: 'ok' | 'wrong' | 'failed'
  readonly note: string
  readonly error: number | null
  readonly times: Times | null
  readonly facts?: Readonly<Record<string, number | string>>
}

/** A line of a case's table. */
export const entryOf = (r: PythonResult): Entry => ({
  name: r.name,
  side: 'peer',
  result: r.result,
  note: r.note,
  error: r.error,
  scouted: r.times?.event ?? null,
  times: r.times,
  ...(r.facts ? { facts: r.facts } : {}),
})

/** Runs a program on cases that `write` makes, with arrays as files of a folder; it is said where there are no results. */
export async function pythonPeers(
  program: string,
  s: { readonly options: { readonly quick: boolean }; say(text: string): void },
  write: (folder: string) => readonly PythonCase[],
): Promise<readonly PythonResult[]> {
  const folder = mkdtempSync(join(tmpdir(), 'spt-bench-'))
  try {
    const cases = write(folder)
    if (cases.length === 0) return []
    const { results, said } = await runPython(program, folder, cases, s.options.quick)
    for (const text of said) s.say(text)
    return results
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** More would not finish within a run of the suites. */
const LIMIT_MS = 240_000

/** Runs a program of this folder; where Python, PyTorch or Triton is missing, `said` has the reason and there are no results. */
async function runPython(
  program: string,
  folder: string,
  cases: readonly PythonCase[],
  quick: boolean,
): Promise<{ readonly results: readonly PythonResult[]; readonly said: readonly string[] }> {
  const script = packageFile(`bench/peers/${program}`)
  const list = join(folder, 'cases.json')
  writeFileSync(list, JSON.stringify({ folder, quick, cases }))
  const there = spawnSync('python3', ['-c', 'import torch, triton; assert torch.cuda.is_available()'], {
    encoding: 'utf8',
  })
  if (there.status !== 0)
    return { results: [], said: [`PyTorch and Triton are not here: ${lastLine(there.stderr ?? '')}`] }
  const results: PythonResult[] = []
  const said: string[] = []
  const take = (line: string): void => {
    if (line.startsWith('{')) results.push(JSON.parse(line) as PythonResult)
    else if (line !== '') said.push(line)
  }
  await new Promise<void>((resolve) => {
    const child = spawn('python3', ['-u', script, list], { timeout: LIMIT_MS })
    let rest = ''
    let errors = ''
    child.stdout.on('data', (chunk: Buffer) => {
      const lines = (rest + chunk.toString('utf8')).split('\n')
      rest = lines.pop() ?? ''
      for (const l of lines) take(l)
    })
    child.stderr.on('data', (chunk: Buffer) => {
      errors = (errors + chunk.toString('utf8')).slice(-4000)
    })
    child.on('close', (code, signal) => {
      take(rest)
      if (code !== 0) said.push(`python3 ended with ${signal ?? code}: ${lastLine(errors)}`)
      resolve()
    })
    child.on('error', (error) => {
      said.push(`python3: ${error.message}`)
      resolve()
    })
  })
  return { results, said }
}

const lastLine = (text: string): string => text.trim().split('\n').pop() ?? ''
