import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { Numbers } from '../../src/io/text/number.ts'
import { runs } from '../support/cases.ts'
import { property } from '../support/property.ts'
import { bytesOf } from './support.ts'

function float(text: string): number {
  const n = new Numbers()
  n.reset(bytesOf(text))
  const v = n.float()
  expect(n.ok, text).toBe(true)
  expect(n.pos).toBe(text.length)
  return v
}

function refuses(text: string, how: 'float' | 'int'): boolean {
  const n = new Numbers()
  n.reset(bytesOf(text))
  n[how]()
  return !n.ok && n.pos === 0
}

const digits = (maxLength: number) =>
  fc.array(fc.nat(9), { minLength: 1, maxLength }).map((list) => list.join(''))

describe('floats are exactly rounded', () => {
  property([fc.double()], { numRuns: runs(1500) })('shortest decimals of doubles', (v) => {
    expect(float(Object.is(v, -0) ? '-0' : String(v).toLowerCase())).toBe(v)
  })
  property([fc.double({ noNaN: true, noDefaultInfinity: true }), fc.integer({ min: 15, max: 30 })], {
    numRuns: runs(1500),
  })('16 to 31 digits', (v, n) => {
    const text = v.toExponential(n)
    if (Number.isFinite(Number(text))) expect(float(text)).toBe(Number(text))
    else expect(refuses(text, 'float')).toBe(true)
  })
  property([digits(40), digits(40), fc.integer({ min: -60, max: 60 }), fc.boolean()], {
    numRuns: runs(2500),
  })('any digits, point and exponent agree with Number', (a, b, e, minus) => {
    const text = `${minus ? '-' : ''}${a}.${b}e${e}`
    expect(float(text)).toBe(Number(text))
  })
  // Half-way cases, where one digit more decides: the tail has to be seen.
  property([fc.integer({ min: 2 ** 52, max: 2 ** 53 - 2 }), fc.integer({ min: 1, max: 9 })], {
    numRuns: runs(1000),
  })('next to half-way cases', (m, d) => {
    for (const tail of ['5', `5${'0'.repeat(9)}${d}`, `4${'9'.repeat(9)}${d}`]) {
      const text = `${m}.${tail}`
      expect(float(text)).toBe(Number(text))
    }
  })
  // The hardest inputs: the midpoint of two doubles, cut off after 30 digits.
  property([fc.double({ min: 1e-13, max: 1e43, noNaN: true }), fc.integer({ min: 17, max: 30 })], {
    numRuns: runs(2500),
  })('midpoints of doubles, truncated and one unit more', (v, length) => {
    // v = m · 2^e exactly; the midpoint to the next double is (2m + 1) · 2^(e - 1).
    const e = Math.floor(Math.log2(v)) - 52
    const odd = 2n * BigInt(v / 2 ** e) + 1n
    const shift = BigInt(Math.abs(e - 1))
    // As an integer of so many digits after the point.
    const places = e < 1 ? shift : 0n
    const exact = e < 1 ? odd * 5n ** shift : odd << shift
    const all = exact.toString()
    const cut = BigInt(all.slice(0, length))
    for (const kept of [cut, cut + 1n]) {
      const text = `${kept}e${all.length - Math.min(length, all.length) - Number(places)}`
      expect(float(text)).toBe(Number(text))
    }
  })
  test('midpoints that double-double arithmetic alone gets wrong', () => {
    for (const text of [
      '202663683421302434991501719368e7',
      '834059323741177516058087348938e-23',
      '320790747346751943026533068596e7',
      '505756022697637708915863186121e-25',
      '435091874465328884940168514985e5',
    ])
      expect(float(text)).toBe(Number(text))
  })
  test('forms', () => {
    expect(float('1d3')).toBe(1000)
    expect(float('-1.5D-2')).toBe(-0.015)
    expect(float('+.5')).toBe(0.5)
    expect(float('5.')).toBe(5)
    expect(float('-0')).toBe(-0)
    expect(float('1e-400')).toBe(0)
    expect(float('2.2250738585072011e-308')).toBe(Number('2.2250738585072011e-308'))
    expect(float('-Inf')).toBe(Number.NEGATIVE_INFINITY)
    expect(float('infinity')).toBe(Number.POSITIVE_INFINITY)
    expect(float('NaN')).toBe(Number.NaN)
  })
  test('invalid numbers are rejected without advancing the cursor', () => {
    for (const text of [
      '',
      '-',
      '.',
      'e5',
      '1e',
      '1e+',
      '1.2.3',
      '0x10',
      '1_000',
      'infinit',
      'nano',
      '--1',
      '1-',
      '1e400',
      '-17976931348623159e292',
    ])
      expect(refuses(text, 'float'), text).toBe(true)
  })
})

describe('integers', () => {
  property([fc.maxSafeInteger()])('are read as printed', (v) => {
    const n = new Numbers()
    n.reset(bytesOf(`${v} 7`))
    expect(n.int()).toBe(v)
    expect(n.skipBlanks()).toBe(true)
    expect(n.int()).toBe(7)
    expect(n.skipBlanks()).toBe(false)
  })
  test('invalid integers are rejected', () => {
    for (const text of ['', '-', '1.5', '1e3', 'a', '1a', '+-1'])
      expect(refuses(text, 'int'), text).toBe(true)
  })
})
