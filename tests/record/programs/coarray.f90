! Co-Array Fortran: images read from their neighbors, add up under a lock, and reduce.
program coarray
  implicit none
  integer, parameter :: n = 100, steps = 5
  real :: a(0:n + 1)[*], b(n)
  integer :: me, last, step
  me = this_image()
  last = num_images()
  a = real(me)
  do step = 1, steps
    sync all
    if (me > 1) a(0) = a(n)[me - 1]
    if (me < last) a(n + 1) = a(1)[me + 1]
    b = 0.5 * (a(0:n - 1) + a(2:n + 1))
    sync all
    a(1:n) = b
  end do
  critical
    a(1)[1] = a(1)[1] + 1.0
  end critical
  call co_sum(b(1))
  sync all
end program
