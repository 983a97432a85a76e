/** A machine with just the files named; folders are implied. */
import type { Machine } from '../../src/runtime/cuda/libraries.ts'

export function fakeMachine(files: readonly string[], env: Record<string, string> = {}): Machine {
  const inside = (folder: string): string[] =>
    files.filter((f) => f.startsWith(`${folder}/`)).map((f) => f.slice(folder.length + 1).split('/')[0]!)
  return {
    env,
    home: '/home/u',
    exists: (path) => files.includes(path) || inside(path).length > 0,
    list: (folder) => [...new Set(inside(folder))],
    real: (path) => path,
  }
}
