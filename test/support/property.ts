/**
 * Property-based tests: `property([arbitraries], parameters)(name, predicate, options)`. A predicate fails if it throws, or
 * returns `false`. The package @fast-check/vitest is not used: it builds every chain of modifiers of `test` beforehand, which
 * takes 4 s and 275 MB in each process.
 */
import fc from 'fast-check'
import { type TestOptions, test } from 'vitest'

type Arbitraries<T> = { [K in keyof T]: fc.Arbitrary<T[K]> }

export const property =
  <T extends [unknown, ...unknown[]]>(arbitraries: Arbitraries<T>, parameters?: fc.Parameters<NoInfer<T>>) =>
  (name: string, predicate: (...values: T) => unknown, options: TestOptions = {}): void =>
    test(name, options, () =>
      fc.assert(
        fc.asyncProperty<T>(
          ...arbitraries,
          async (...values) => (await predicate(...values)) as boolean | undefined,
        ),
        parameters,
      ),
    )
