import { describe, expect, test } from 'vitest'
import { print1 } from '../../src/ir/print/print-stage1.ts'
import { verify1 } from '../../src/verifiers/stage1.ts'
import { PROGRAMS } from '../elaborate/programs.ts'
import { kernelOf } from '../elaborate/support.ts'

/** A value without its spans. */
function bare(x: unknown): unknown {
  if (Array.isArray(x)) return x.map(bare)
  if (typeof x !== 'object' || x === null) return x
  return Object.fromEntries(
    Object.entries(x).flatMap(([k, v]) => (k === 'span' || v === undefined ? [] : [[k, bare(v)]])),
  )
}

describe.each(Object.entries(PROGRAMS))('%s', (_, text) => {
  test('is accepted and verified', () => verify1(kernelOf(text)))
  test('prints, and reads back as the same kernel', () => {
    const kernel = kernelOf(text)
    const again = kernelOf(print1(kernel))
    expect(bare(again)).toEqual(bare(kernel))
    expect(print1(again)).toBe(print1(kernel))
  })
})

test('the printed form', () => {
  expect(print1(kernelOf(PROGRAMS.nested!))).toMatchInlineSnapshot(`
    "kernel nested(m: size, n: size) {
      axis i = dense_fixed(m)
      axis j = sparse_variable(i, n)
      buffer A: f32[i, j] inout
      buffer t: f32[i] local
      iterate normalise [i] as S {
        iterate total [j] as R {
          t[i] += abs(A[i, j])
        }
        let scale = select(t[i] == 0, 1, t[i])
        iterate divide [j] as S {
          A[i, j] = A[i, j] / scale
        }
      }
      iterate nothing [] {
        if (m > n) {
          iterate clear [i, j] as SS {
            A[i, j] = 0
          }
        }
      }
    }"
  `)
  expect(print1(kernelOf(PROGRAMS.types!))).toMatchInlineSnapshot(`
    "kernel types(m: size, h: f16, k: i8, alpha: f64) {
      axis i = dense_fixed(m)
      buffer a: f16[i] in
      buffer b: bf16[i] in
      buffer c: i8[i] in
      buffer d: u8[i] in accumulate i32
      buffer e: u32[i] in
      buffer x: f32[i] out
      buffer y: f64[i] out
      buffer z: i32[i] out
      buffer w: i8[] out accumulate i32
      iterate it [i] as S {
        x[i] = f32(a[i] * h) + f32(b[i] * 0.25) + f32(m)
        y[i] = alpha * 2 - pow(f64(c[i]), 2) + select(i < m - 1, f64(0.001), f64(inf))
        z[i] = i32(c[i]) * i32(k) + i32(d[i]) / 3 + i32(e[i]) % 5
        let odd = i % 2 == 1 or i32(c[i]) > 0
        if (odd and not i32(d[i]) >= 3) {
          y[i] = erf(alpha)
        } else if (odd) {
          x[i] = f32(round(a[i]))
        }
      }
      iterate total [i] as R {
        w[] += i32(c[i]) * i32(c[i])
      }
    }"
  `)
})
