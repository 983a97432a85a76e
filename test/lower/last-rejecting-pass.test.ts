/** What `spt check` leaves out of lowering cannot refuse: no pass after the last that may has what refusals are made with. */
import { readFileSync } from 'node:fs'
import { basename, dirname, normalize, resolve } from 'node:path'
import { expect, test } from 'vitest'
import { LAST_REJECTING_PASS, LAUNCH_PASSES } from '../../src/lower/passes.ts'

const textOf = (file: string): string => readFileSync(resolve('src/lower', file), 'utf8')
const importsOf = (file: string): readonly (readonly [names: string, file: string])[] =>
  [...textOf(file).matchAll(/^import (?!type\b)([^;]*?) from '(\.\.?\/[\w./-]+\.ts)'/gm)]
    .map((m) => [m[1]!, normalize(`${dirname(file)}/${m[2]!}`)] as const)
    .filter(([, from]) => !from.startsWith('..'))

/** The file with those of its room that it runs. */
function reached(file: string, into: Set<string> = new Set()): ReadonlySet<string> {
  if (!into.has(file)) {
    into.add(file)
    for (const [, next] of importsOf(file)) reached(next, into)
  }
  return into
}

const refuses = (file: string): boolean =>
  /\bfail\w*\(|\bSptError\b/.test(textOf(file).replace(/@throws.*/g, ''))

const last = LAUNCH_PASSES.findIndex((p) => p.name === LAST_REJECTING_PASS)
const fileOf = (run: unknown): string => {
  const [called] = importsOf('passes.ts').filter(([names]) =>
    (names.match(/\w+/g) ?? []).some((n) => new RegExp(`\\b${n}\\)?\\(`).test(String(run))),
  )
  return called![1]
}

test('the last rejecting pass can reject, and later passes cannot', () => {
  expect(last).toBeGreaterThan(0)
  expect([...reached(fileOf(LAUNCH_PASSES[last]!.run))].filter(refuses)).not.toEqual([])
  for (const { name, run } of LAUNCH_PASSES.slice(last + 1))
    expect([name, [...reached(fileOf(run))].filter(refuses).map((f) => basename(f))]).toEqual([name, []])
})
