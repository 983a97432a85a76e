/**
 * A kernel that faults takes its device with it, and CUDA refuses all work in the process from then on. So the run goes
 * on in a process of its own, which knows the cases that are done and leaves out who did it.
 */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { PythonResult } from '../peers/python.ts'
import type { Case } from './case.ts'
import type { Preparation } from './preparation.ts'

/** What a later process has to know. */
export interface State {
  readonly cases: readonly Case[]
  readonly preparations: readonly Preparation[]
  readonly python: readonly PythonResult[] | null
  /** Contestants that ended a device, and how. */
  readonly culprits: readonly (readonly [name: string, what: string])[]
  readonly libraries: Readonly<Record<string, string>>
  readonly milliseconds: number
}

const VARIABLE = 'SPT_BENCH_STATE'
/** More than so many culprits, and something else is wrong. */
export const MOST_CULPRITS = 8

/** What an earlier process has left for this one. */
export function inherited(): State | undefined {
  const path = process.env[VARIABLE]
  if (path === undefined) return undefined
  return JSON.parse(readFileSync(path, 'utf8')) as State
}

/** Runs the rest in another process, whose output comes here; its exit code. */
export function goOn(argv: readonly string[], state: State): number {
  const path = join(mkdtempSync(join(tmpdir(), 'spt-bench-')), 'state.json')
  writeFileSync(path, JSON.stringify(state))
  try {
    const env = { ...process.env, [VARIABLE]: path }
    return spawnSync(process.execPath, [...process.execArgv, ...argv], { env, stdio: 'inherit' }).status ?? 1
  } finally {
    rmSync(dirname(path), { recursive: true, force: true })
  }
}
