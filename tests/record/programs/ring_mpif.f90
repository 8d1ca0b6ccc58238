! The ring with mpif.h.
program ring
  implicit none
  include 'mpif.h'
  integer :: rank, size, step, code, half, requests(2)
  double precision :: sent(1), received(1), total(1)
  include 'body.inc'
end program ring
