/**
 * Plans as one C program that a compiler of this machine makes. Each array is allocated on its own, so that sanitizers see accesses
 * beyond its end.
 */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { emit } from '../../src/backends/targets/index.ts'
import type { Cells } from '../../src/interpret/memory-cells.ts'
import type { Kernel3 } from '../../src/ir/statements/loops.ts'
import { decoder, encoder, newValues } from '../../src/storage/tensor.ts'
import { TIME_LIMIT } from './time-limit.ts'

export const compilerOfC = ['cc', 'gcc', 'clang'].find((c) => spawnSync(c, ['--version']).status === 0)

export interface PlanOnArrays {
  readonly plan: Kernel3
  readonly params: ReadonlyMap<string, number>
  readonly memory: Map<string, Cells>
  /** True for 64-bit indices. */
  readonly wide?: boolean
}

/** Runs each plan once, in place. Functions that texts share stand in the program once. */
export function runAsC(cases: readonly PlanOnArrays[], options: readonly string[] = ['-fopenmp']): void {
  const chunks = new Set<string>()
  const calls: string[] = []
  let bytes = 0
  const arrays = cases.map(({ plan, memory, params, wide }, k) => {
    const places = new Map<string, Place>()
    for (const b of plan.buffers) {
      const values = newValues(b.dtype, memory.get(b.name)!.length)
      const write = encoder(b.dtype)
      Array.from(memory.get(b.name)!).forEach((x, i) => {
        values[i] = write ? write(x, i) : x
      })
      places.set(b.name, { at: bytes, bytes: values.byteLength })
      parts.push([bytes, new Uint8Array(values.buffer, values.byteOffset, values.byteLength)])
      bytes = Math.ceil((bytes + values.byteLength + 1) / 16) * 16
    }
    const modules = emit(plan, 'c', { wide })
    const entries = modules.flatMap((m) => m.entries)
    for (const chunk of modules.flatMap((m) => m.text.trimEnd().split('\n\n')))
      chunks.add(
        entries.reduce((t, e) => t.replace(`void ${e.name}(`, `static void of${k}_${e.name}(`), chunk),
      )
    let next = 0
    for (const step of plan.steps) {
      if (step.kind === 'clear') {
        const { at, bytes: n } = places.get(step.buffer)!
        calls.push(`  memset(array${at}, 0, ${n});`)
        continue
      }
      const entry = entries[next++]!
      const args = entry.args.map((a) => {
        if (a.kind === 'buffer') return `array${places.get(a.name)!.at}`
        return `${params.get(a.name)!}`
      })
      calls.push(`  of${k}_${entry.name}(${args.join(', ')});`)
    }
    return places
  })
  const places = arrays.flatMap((a) => [...a.values()])
  const image = new Uint8Array(bytes + 16)
  for (const [at, part] of parts.splice(0)) image.set(part, at)
  const folder = mkdtempSync(join(tmpdir(), 'spt-c-'))
  const file = (name: string): string => join(folder, name)
  try {
    writeFileSync(file('data'), image)
    writeFileSync(file('all.c'), programOf([...chunks], calls, image.length, places))
    const made = spawnSync(
      compilerOfC!,
      [
        '-std=c11',
        '-O1',
        '-Wall',
        '-Wno-unknown-pragmas',
        '-Wno-unused',
        // What is copied ahead under a condition is read under the same one: compilers do not see it.
        '-Wno-uninitialized',
        '-Wno-maybe-uninitialized',
        ...options,
        file('all.c'),
        '-o',
        file('all'),
        '-lm',
      ],
      { encoding: 'utf8' },
    )
    if (made.status !== 0 || made.stderr !== '') throw new Error(made.stderr.slice(0, 4000))
    const ran = spawnSync(file('all'), [file('data')], {
      timeout: TIME_LIMIT / 2,
      encoding: 'utf8',
      // Leaks cannot be detected where tracing of processes is forbidden.
      env: { OMP_NUM_THREADS: '2', ASAN_OPTIONS: 'detect_leaks=0' },
    })
    if (ran.status !== 0) throw new Error(`the program ended with ${ran.status ?? ran.signal}: ${ran.stderr}`)
    const after = readFileSync(file('data'))
    cases.forEach(({ plan, memory }, k) => {
      for (const b of plan.buffers) {
        const { at, bytes: n } = arrays[k]!.get(b.name)!
        const values = newValues(b.dtype, memory.get(b.name)!.length)
        new Uint8Array(values.buffer, values.byteOffset, n).set(after.subarray(at, at + n))
        const read = decoder(b.dtype)
        memory.set(
          b.name,
          Array.from(values, (x) => (read ? read(x) : x)),
        )
      }
    })
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

const parts: (readonly [number, Uint8Array])[] = []

interface Place {
  readonly at: number
  readonly bytes: number
}

const programOf = (
  chunks: readonly string[],
  calls: readonly string[],
  bytes: number,
  places: readonly Place[],
): string => `
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
${chunks.join('\n\n')}

static _Alignas(16) unsigned char data[${bytes}];
int main(int count, char** names) {
  FILE* f = fopen(names[count - 1], "rb");
  if (!f || fread(data, 1, sizeof data, f) != sizeof data) return 1;
  fclose(f);
${places.map(({ at, bytes: n }) => `  void* const array${at} = memcpy(malloc(${n || 1}), data + ${at}, ${n});`).join('\n')}
${calls.join('\n')}
${places.map(({ at, bytes: n }) => `  memcpy(data + ${at}, array${at}, ${n});`).join('\n')}
  f = fopen(names[count - 1], "wb");
  return !f || fwrite(data, 1, sizeof data, f) != sizeof data || fclose(f) != 0;
}
`
