;;; Uses libmulticast from Guile. The argument is the path of libmulticast.so.
(use-modules (ice-9 match) (rnrs bytevectors) (system foreign) (system foreign-library))

;;; ---- Declarations from multicast.h -------------------------------------------------------------

(define OK 0)
(define INVALID-HANDLE -10)
(define NOT-FOUND -30)
(define TIMEOUT -70)

(define library (load-foreign-library (cadr (command-line))))

(define-syntax-rule (define-foreign name c-name result (argument ...))
  (define name
    (foreign-library-function library c-name #:return-type result
                              #:arg-types (list argument ...))))

(define handle uint64)                  ; a struct of one integer goes as the integer
(define delegate (list '* '*))          ; a struct by value: function, context
(define options (list uint32 uint32 int32 uint32 uint64 handle handle '* '* '*))
(define stats (cons* uint32 uint32 (make-list 8 uint64)))

(define-foreign version "multicast_version" uint32 ())
(define-foreign status-name "multicast_status_name" '* (int64))
(define-foreign create "multicast_create" handle ())
(define-foreign destroy "multicast_destroy" int (handle))
(define-foreign is-valid "multicast_is_valid" uint8 (handle))
(define-foreign add "multicast_add" int (handle delegate '* '*))
(define-foreign remove "multicast_remove" int (handle delegate))
(define-foreign count "multicast_count" int64 (handle))
(define-foreign invoke "multicast_invoke" int64 (handle uint32 '* size_t))
(define-foreign token-remove "multicast_token_remove" int (handle))
(define-foreign token-is-live "multicast_token_is_valid" uint8 (handle))
(define-foreign lifetime-create "multicast_lifetime_create" handle ())
(define-foreign lifetime-end "multicast_lifetime_end" int (handle))
(define-foreign queue-create "multicast_queue_create" handle ('*))
(define-foreign queue-destroy "multicast_queue_destroy" int (handle))
(define-foreign queue-fd "multicast_queue_fd" int (handle))
(define-foreign queue-run "multicast_queue_run" int64 (handle size_t))
(define-foreign queue-wait "multicast_queue_wait" int64 (handle uint64))
(define-foreign queue-get-stats "multicast_queue_get_stats" int (handle '*))

(define* (make-options #:key (struct-size (sizeof options)) (priority 0) (lifetime 0) (queue 0)
                       (release %null-pointer))
  (make-c-struct options (list struct-size 0 priority 0 0 lifetime queue release
                               %null-pointer %null-pointer)))

;;; ---- Checks and delegates ----------------------------------------------------------------------

(define checks 0)
(define failures 0)

(define (check-equal file line source actual expected)
  (set! checks (1+ checks))
  (unless (equal? actual expected)
    (set! failures (1+ failures))
    (format #t "~a:~a: ~s: ~s is not ~s~%" file line source actual expected)))

(define-syntax check
  (lambda (form)
    (syntax-case form ()
      ((_ actual expected)
       (let ((place (syntax-source form)))
         #`(check-equal #,(assq-ref place 'filename) #,(1+ (assq-ref place 'line)) 'actual
                        actual expected))))))

(define calls '())
(define released '())

(define (bytes-of payload size)
  (if (zero? size) "" (utf8->string (pointer->bytevector payload size))))

;; The callbacks are defined in the module, because Guile would free a callback to which only the
;; library refers. Exceptions and continuations must not pass through the library, so they end in the
;; callbacks. A queue that calls Guile must not have its own thread, because Guile would not know it.
(define listen
  (procedure->pointer
   void
   (lambda (context event payload size)
     (false-if-exception
      (set! calls (cons (list (pointer-address context) event (bytes-of payload size)) calls))))
   (list '* uint32 '* size_t)))

(define release
  (procedure->pointer
   void
   (lambda (context) (set! released (cons (pointer-address context) released)))
   (list '*)))

(define (taken)
  (let ((result (reverse calls)))
    (set! calls '())
    result))

(define (invoke-text target event text)
  (let ((bytes (string->utf8 text)))
    (invoke target event (bytevector->pointer bytes) (bytevector-length bytes))))

(define (invoke-empty target event) (invoke target event %null-pointer 0))

(define (readable? fd) (not (null? (car (select (list fd) '() '() 0)))))

(define first (make-c-struct delegate (list listen (make-pointer 1))))
(define second (make-c-struct delegate (list listen (make-pointer 2))))

;;; ---- The tests ---------------------------------------------------------------------------------

(define (test-delegates)
  (let ((m (create)) (lifetime (lifetime-create)) (out (make-bytevector 8)))
    (check (is-valid m) 1)
    (check (add m first %null-pointer %null-pointer) OK)
    (check (add m second %null-pointer %null-pointer) OK)
    (gc)
    (check (invoke-text m 7 "hel\x00;lo") 2)
    (check (taken) '((1 7 "hel\x00;lo") (2 7 "hel\x00;lo")))
    (check (remove m first) OK)
    (check (remove m first) NOT-FOUND)
    (check (invoke-text m 8 "x") 1)
    (check (taken) '((2 8 "x")))

    (check (add m first (make-options #:lifetime lifetime) %null-pointer) OK)
    (check (invoke-empty m 9) 2)
    (check (taken) '((2 9 "") (1 9 "")))
    (check (lifetime-end lifetime) OK)
    (check (lifetime-end lifetime) INVALID-HANDLE)
    (check (count m) 1)

    (check (add m first (make-options #:priority 1 #:release release) (bytevector->pointer out)) OK)
    (check (invoke-empty m 10) 2)
    (check (taken) '((1 10 "") (2 10 "")))
    (check released '())
    (let ((token (bytevector-u64-native-ref out 0)))
      (check (token-remove token) OK)
      (check (token-remove token) INVALID-HANDLE)
      (check (token-is-live token) 0))
    (check released '(1))
    (check (destroy m) OK)
    (check (is-valid m) 0)))

(define (statistics queue)
  (let ((out (make-c-struct stats (cons (sizeof stats) (make-list 9 0)))))
    (check (queue-get-stats queue out) OK)
    (match (parse-c-struct out stats)
      ((_ _ pending queued delivered . _) (list pending queued delivered)))))

(define (test-queue)
  (let* ((m (create)) (queue (queue-create %null-pointer)) (fd (queue-fd queue))
         (payload (string->utf8 "later")))
    (check (add m first (make-options #:queue queue) %null-pointer) OK)
    (check (readable? fd) #f)
    (check (queue-wait queue 0) TIMEOUT)
    (check (invoke m 3 (bytevector->pointer payload) 5) 1)
    (bytevector-fill! payload 0)        ; the queue has its own copy
    (check (taken) '())
    (check (readable? fd) #t)
    (check (statistics queue) '(1 1 0))
    (check (queue-run queue 0) 1)
    (check (taken) '((1 3 "later")))
    (check (readable? fd) #f)
    (check (statistics queue) '(0 1 1))
    (check (queue-destroy queue) OK)
    (check (destroy m) OK)))

(check (ash (version) -16) 1)
(test-delegates)
(test-queue)
(check (invoke-empty #xDEADBEEFDEADBEEF 0) INVALID-HANDLE)
(check (pointer->string (status-name NOT-FOUND)) "MULTICAST_ERROR_NOT_FOUND")
(if (zero? failures)
    (format #t "guile: ~a checks passed~%" checks)
    (format #t "guile: ~a of ~a checks failed~%" failures checks))
(exit (zero? failures))
